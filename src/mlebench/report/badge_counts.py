"""How many medals of an agent have a badge, by competition."""

from collections.abc import Sequence
from dataclasses import dataclass

from mlebench.report.types import RunOutcome


@dataclass(frozen=True)
class BadgeCount:
    """How many medals of an agent in a competition have this badge."""

    competition: str
    badge: str  # its label
    kind: str
    medals: int
    of: int  # all medals of the agent in this competition


def count_badges(outcomes: Sequence[RunOutcome]) -> list[BadgeCount]:
    """Return the badges of an agent's medals, by competition."""
    medals: dict[str, list[RunOutcome]] = {}
    for outcome in outcomes:
        if outcome.any_medal:
            medals.setdefault(outcome.competition, []).append(outcome)
    counts = []
    for competition, earned in sorted(medals.items()):
        kinds = {badge.label: badge.kind for outcome in earned for badge in outcome.badges}
        for label, kind in kinds.items():
            with_badge = sum(any(badge.label == label for badge in outcome.badges) for outcome in earned)
            counts.append(BadgeCount(competition, label, kind, with_badge, len(earned)))
    return counts
