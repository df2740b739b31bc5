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


def header(found: Sequence[Familiarity]) -> list[str]:
    return ALWAYS + ASKED if _was_asked(found) else ALWAYS


def _was_asked(found: Sequence[Familiarity]) -> bool:
    return any(one.refused != NOT_ASKED for one in found)


def rows(found: Sequence[Familiarity]) -> Iterator[list[Any]]:
    asked = _was_asked(found)
    for one in found:
        yield [one.competition, one.deadline.day, one.against_cutoff, *(_measured(one) if asked else ())]


def _measured(one: Familiarity) -> Iterator[Any]:
    yield one.difference.n if one.difference else None
    yield one.difference
    for kind in KINDS:
        estimate = difference_of(one.completion.of(kind)) if one.completion else None
        yield estimate and f"{estimate.value:+.3f}"
    yield one.refused


def likelihood_rows(found: Sequence[Familiarity]) -> Iterator[list[Any]]:
    for one in found:
        for each in one.likelihood:
            yield [one.competition, each.kind, each.probability.n, each.probability, each.min_k]


def notes(found: Sequence[Familiarity]) -> Iterator[str]:
    """What the table adds up to."""
    counts = {side: sum(one.against_cutoff == side for one in found) for side in (BEFORE, AFTER, UNKNOWN)}
    if counts[UNKNOWN] < len(found):
        told = f"{counts[BEFORE]} closed before the cut-off, {counts[AFTER]} after it, {counts[UNKNOWN]} unknown"
        yield f"Competitions: {told}."
    for side, estimate in overall(found):
        yield f"Mean difference over {WHICH[side]}, n = {estimate.n}: {estimate}."
    placebo = [one.completion.of(OURS) for one in found if one.completion]
    if estimate := difference_of([tested for each in placebo for tested in each]):
        yield f"The same with our own descriptions, which it should not know, n = {estimate.n}: {estimate}."
    for reason in dict.fromkeys(one.no_likelihood for one in found if one.completion and one.no_likelihood):
        yield f"Token probabilities were left out: {reason}."
    if unanswered := sum(one.completion.unanswered for one in found if one.completion):
        yield f"{unanswered} pairs were not answered and do not count."


def as_json(found: Sequence[Familiarity], correlations: Sequence[Correlation], **facts: Any) -> dict[str, Any]:
    return {
        **facts,
        "competitions": [one.to_dict() for one in found],
        "overall": {side: estimate.to_dict() for side, estimate in overall(found)},
        "correlations": [one.to_dict() for one in correlations],
    }
