"""Badges: reasons to look twice at a medal. They are never verdicts: docs/understanding/profile-v2.md."""

from collections.abc import Iterable, Iterator

from mlebench.config import KnownIssue
from mlebench.records.report import BADGES, Badge

LEAK, CONTAMINATION, LOW_POWER = BADGES
FEWEST_UNITS = 100  # of a test set
LEAST_HOLD = 0.8  # the share of resamples in which a medal holds


def badges_of(
    issues: Iterable[KnownIssue], test_units: int | None = None, medal_holds: float | None = None
) -> tuple[Badge, ...]:
    """Return the badges of a score: from its competition's known issues, its test set, and how well its medal holds."""
    return (*_of_issues(issues), *_of_power(test_units, medal_holds))


def _of_issues(issues: Iterable[KnownIssue]) -> Iterator[Badge]:
    for kind in (LEAK, CONTAMINATION):
        for issue in issues:
            if issue.kind == kind:
                yield Badge(kind=kind, issue=issue.id, text=f"may have had help from {issue.id}: {issue.text}")


def _of_power(test_units: int | None, medal_holds: float | None) -> Iterator[Badge]:
    reasons = []
    if test_units is not None and test_units < FEWEST_UNITS:
        reasons.append(f"the test set has {test_units} unit{'s' * (test_units != 1)}, fewer than {FEWEST_UNITS}")
    if medal_holds is not None and medal_holds < LEAST_HOLD:
        reasons.append(f"the medal holds in {medal_holds:.1%} of resamples, less than {LEAST_HOLD:.0%}")
    if reasons:
        yield Badge(kind=LOW_POWER, text=f"may be chance: {', and '.join(reasons)}")


def badges_to_text(badges: Iterable[Badge]) -> str | None:
    """Return badges as a report states them: `leak L4, low_power`; None if there are none."""
    return ", ".join(f"{badge.kind} {badge.issue}" if badge.issue else badge.kind for badge in badges) or None


def badges_in_text(text: str | None) -> tuple[Badge, ...]:
    """Return the badges that a report states; it does not say why a score has them."""
    parts = [part.partition(" ") for part in (text or "").split(", ")]
    return tuple(
        Badge(kind=kind, issue=issue or None, text=f"may have had help from {issue}" if issue else "may be chance")
        for kind, _, issue in parts
        if kind in BADGES
    )


def medal_with_badges(medal: str | None, labels: Iterable[str]) -> str | None:
    """Return a medal's name for a table, with the labels of its badges."""
    listed = ", ".join(labels)
    return f"{medal} ({listed})" if medal and listed else medal
