"""Familiarity against performance: do agents do better where their model knows the competition better?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mlebench.core.errors import PrerequisiteError
from mlebench.integrity.familiarity.effects import FEWEST_COMPETITIONS, EffectEstimate, rank_correlation
from mlebench.integrity.familiarity.study import Familiarity
from mlebench.registry import Registry
from mlebench.report.competition_lookup import CompetitionLookup
from mlebench.report.inputs import Inputs, one_kind
from mlebench.report.types import TWIN


@dataclass(frozen=True)
class Point:
    competition: str
    familiarity: float
    performance: float  # the share of the way from the sample submission to gold


@dataclass(frozen=True)
class Correlation:
    agent: str
    points: list[Point]
    estimate: EffectEstimate | None
    refused: str | None = None  # why there is none

    def to_dict(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "competitions": len(self.points),
            "spearman": self.estimate.to_dict() if self.estimate else None,
            "refused": self.refused,
            "points": [asdict(point) for point in self.points],
        }


def read_performance(inputs: Inputs) -> dict[str, dict[str, float]]:
    """For each agent, the mean over seeds for each competition that has a scale."""
    reported_runs = inputs.reported_runs()
    if not reported_runs:
        raise PrerequisiteError("the given inputs hold no runs")
    profile, data = one_kind(reported_runs)
    if data == TWIN:
        raise PrerequisiteError("scores on twins say nothing about competitions: give reports on real data")
    scores_of: dict[str, dict[str, list[float]]] = {}
    for entry in inputs.entries(CompetitionLookup(Registry(profile=profile))):
        for outcome in entry.outcomes:
            if outcome.normalised is not None and not outcome.missing:
                scores_of.setdefault(entry.agent, {}).setdefault(outcome.competition, []).append(outcome.normalised)
    return {agent: {id: sum(all) / len(all) for id, all in scores.items()} for agent, scores in scores_of.items()}


def correlate(
    familiarities: Sequence[Familiarity], performance: Mapping[str, Mapping[str, float]]
) -> list[Correlation]:
    known = {
        familiarity.competition: familiarity.difference.value for familiarity in familiarities if familiarity.difference
    }
    correlations = []
    for agent, scores in performance.items():
        points = [Point(id, known[id], scores[id]) for id in known if id in scores]
        estimate = None
        if len(points) < FEWEST_COMPETITIONS:
            refused = f"{len(points)} competitions have both figures; at least {FEWEST_COMPETITIONS} are needed"
        else:
            estimate = rank_correlation([p.familiarity for p in points], [p.performance for p in points])
            refused = None if estimate else "one of the two figures is the same everywhere"
        correlations.append(Correlation(agent, points, estimate, refused))
    return correlations
