"""The findings, for people and for programs."""

from collections.abc import Iterator, Sequence
from typing import Any

from mlebench.integrity.familiarity.completion import difference_of
from mlebench.integrity.familiarity.deadlines import AFTER, BEFORE, UNKNOWN
from mlebench.integrity.familiarity.performance import Correlation
from mlebench.integrity.familiarity.probes import KINDS, OURS
from mlebench.integrity.familiarity.study import NOT_ASKED, Familiarity, overall

ALWAYS = ["competition", "deadline", "cut-off"]
ASKED = ["n", "difference", *KINDS, "refused"]
WHICH = {
    "all": "all competitions that could be asked about",
    BEFORE: "those closed before the cut-off",
    AFTER: "those closed after the cut-off",
}
LIKELIHOOD = ["competition", "texts", "n", "token probability", "min-k%"]


def header(familiarities: Sequence[Familiarity]) -> list[str]:
    return ALWAYS + ASKED if _was_asked(familiarities) else ALWAYS


def _was_asked(familiarities: Sequence[Familiarity]) -> bool:
    return any(familiarity.refused != NOT_ASKED for familiarity in familiarities)


def rows(familiarities: Sequence[Familiarity]) -> Iterator[list[Any]]:
    was_asked = _was_asked(familiarities)
    for familiarity in familiarities:
        yield [
            familiarity.competition,
            familiarity.deadline.day,
            familiarity.against_cutoff,
            *(_measured(familiarity) if was_asked else ()),
        ]


def _measured(familiarity: Familiarity) -> Iterator[Any]:
    yield familiarity.difference.n if familiarity.difference else None
    yield familiarity.difference
    for kind in KINDS:
        estimate = difference_of(familiarity.completion.of(kind)) if familiarity.completion else None
        yield estimate and f"{estimate.value:+.3f}"
    yield familiarity.refused


def likelihood_rows(familiarities: Sequence[Familiarity]) -> Iterator[list[Any]]:
    for familiarity in familiarities:
        for comparison in familiarity.likelihood:
            yield [
                familiarity.competition,
                comparison.kind,
                comparison.probability.n,
                comparison.probability,
                comparison.min_k,
            ]


def notes(familiarities: Sequence[Familiarity]) -> Iterator[str]:
    """What the table adds up to."""
    counts = {
        side: sum(familiarity.against_cutoff == side for familiarity in familiarities)
        for side in (BEFORE, AFTER, UNKNOWN)
    }
    if counts[UNKNOWN] < len(familiarities):
        counted = f"{counts[BEFORE]} closed before the cut-off, {counts[AFTER]} after it, {counts[UNKNOWN]} unknown"
        yield f"Competitions: {counted}."
    for side, estimate in overall(familiarities):
        yield f"Mean difference over {WHICH[side]}, n = {estimate.n}: {estimate}."
    placebo = [familiarity.completion.of(OURS) for familiarity in familiarities if familiarity.completion]
    if estimate := difference_of([tested for comparison in placebo for tested in comparison]):
        yield f"The same with our own descriptions, which it should not know, n = {estimate.n}: {estimate}."
    for reason in dict.fromkeys(
        familiarity.no_likelihood
        for familiarity in familiarities
        if familiarity.completion and familiarity.no_likelihood
    ):
        yield f"Token probabilities were left out: {reason}."
    if unanswered := sum(familiarity.completion.unanswered for familiarity in familiarities if familiarity.completion):
        yield f"{unanswered} pairs were not answered and do not count."


def as_json(familiarities: Sequence[Familiarity], correlations: Sequence[Correlation], **facts: Any) -> dict[str, Any]:
    return {
        **facts,
        "competitions": [familiarity.to_dict() for familiarity in familiarities],
        "overall": {side: estimate.to_dict() for side, estimate in overall(familiarities)},
        "correlations": [familiarity.to_dict() for familiarity in correlations],
    }
