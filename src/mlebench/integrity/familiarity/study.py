"""A study of a model's familiarity with competitions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from mlebench.integrity.familiarity.completion import Completion, complete
from mlebench.integrity.familiarity.deadlines import AFTER, BEFORE, Deadline, deadline_of
from mlebench.integrity.familiarity.effects import EffectEstimate, mean_difference
from mlebench.integrity.familiarity.likelihood import LikelihoodComparison, measure
from mlebench.integrity.familiarity.originals import Original, find_originals, prose_of_all
from mlebench.integrity.familiarity.probes import common_sentences, our_probes, probes_of
from mlebench.integrity.familiarity.studied_model import NoLogprobsError, StudiedModel
from mlebench.registry import Competition

NOT_ASKED = "no model was asked"
NOTHING_LONG_ENOUGH = "its originals are too short to ask about, or repeat those of other competitions"


@dataclass(frozen=True)
class StudyOptions:
    """What is measured, and with which texts."""

    cutoff: date | None = None  # the end of the model's training data
    meta: dict[str, date] | None = None  # further deadlines of competitions
    texts: Path | None = None  # a folder of original texts
    samples: int = 8  # of each kind, for each competition
    model: StudiedModel | None = None  # None: only deadlines are compared


@dataclass(frozen=True)
class Familiarity:
    """What was found about one competition."""

    competition: str
    deadline: Deadline
    against_cutoff: str
    completion: Completion | None = None
    likelihood: tuple[LikelihoodComparison, ...] = ()
    refused: str | None = None  # why nothing was completed
    no_likelihood: str | None = None  # why no probabilities are known

    @property
    def difference(self) -> EffectEstimate | None:
        return self.completion.difference if self.completion else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "competition": self.competition,
            "deadline": self.deadline.day and self.deadline.day.isoformat(),
            "deadline_source": self.deadline.source,
            "against_cutoff": self.against_cutoff,
            "completion": self.completion.to_dict() if self.completion else None,
            "refused": self.refused,
            "likelihood": {comparison.kind: comparison.to_dict() for comparison in self.likelihood} or None,
            "no_likelihood": self.no_likelihood,
        }


class FamiliarityStudy:
    """Measures how well a model knows competitions. What its endpoint cannot do is tried only once."""

    def __init__(self, options: StudyOptions):
        self._options = options
        texts = options.texts if options.model else None
        self._common = common_sentences(prose_of_all(texts)) if texts else frozenset()
        self._no_logprobs: str | None = None

    def measure(self, competition: Competition) -> Familiarity:
        """Return the model's familiarity with a competition. Raises PrerequisiteError if its endpoint fails."""
        options = self._options
        deadline = deadline_of(competition, options.meta or {})
        facts = (competition.id, deadline, deadline.against(options.cutoff))
        if options.model is None:
            return Familiarity(*facts, refused=NOT_ASKED, no_likelihood=NOT_ASKED)
        originals = find_originals(competition, options.texts)
        if originals.reason:
            return Familiarity(*facts, refused=originals.reason, no_likelihood=originals.reason)
        return self._ask(options.model, competition, originals.originals, facts)

    def _ask(
        self,
        model: StudiedModel,
        competition: Competition,
        originals: Sequence[Original],
        facts: tuple[str, Deadline, str],
    ) -> Familiarity:
        seed = f"familiarity of {competition.id}"
        probes = probes_of(originals, self._options.samples, seed, self._common)
        if not probes:
            return Familiarity(*facts, refused=NOTHING_LONG_ENOUGH, no_likelihood=NOTHING_LONG_ENOUGH)
        ours = our_probes(competition.obfuscated_description, self._options.samples, seed)
        completion = complete(model, [*probes, *ours], f"Kaggle competition {competition.name!r}")
        likelihood: list[LikelihoodComparison] = []
        if self._no_logprobs is None:
            try:
                likelihood = measure(model, probes, ours)
            except NoLogprobsError as error:
                self._no_logprobs = str(error)
        reason = None if likelihood else self._no_logprobs or "it has neither rows nor passages that are long enough"
        return Familiarity(*facts, completion=completion, likelihood=tuple(likelihood), no_likelihood=reason)


def overall(familiarities: Sequence[Familiarity]) -> Iterator[tuple[str, EffectEstimate]]:
    """The mean over competitions, each counted once: over all, and by the cut-off."""
    known = [
        (familiarity.against_cutoff, familiarity.difference.value)
        for familiarity in familiarities
        if familiarity.difference
    ]
    if known:
        yield "all", mean_difference([value for _, value in known])
    for name in (BEFORE, AFTER):
        if values := [value for side, value in known if side == name]:
            yield name, mean_difference(values)
