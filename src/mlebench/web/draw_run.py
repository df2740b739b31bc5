"""Drawings of runs and run groups. They have no fixed width: horizontal positions are in percent."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from mlebench.core.outcomes import CANCELLED, FINISHED, RUN_OUTCOMES, TIMEOUT
from mlebench.web.views import AttemptView, ScorePoint

LINES = ("gold", "silver", "bronze", "median")
HEIGHT = 220.0  # of score over time
LABEL = 15.0  # the least distance between two labels
UNHARMED = (FINISHED, TIMEOUT, CANCELLED)


def is_failure(ended: str | None) -> bool:
    """Whether a run or an attempt that ended in this way failed."""
    return ended in RUN_OUTCOMES and ended not in UNHARMED


def progress(counts: Mapping[str, int]) -> Markup:
    """How far a group has got: how many of its runs have ended, failed or are in progress."""
    total = max(1, counts["runs"])
    parts = [_bar("scale", 0, 100, 0, "100%")]
    left = 0.0
    for name in ("ended", "failed", "running"):
        share = 100 * counts[name] / total
        parts += [_bar(name, left, share, 0, "100%")] if share else []
        left += share
    label = ", ".join(f"{counts[name]} {name}" for name in ("ended", "failed", "running", "planned"))
    return _fluid("progress", f"of {counts['runs']} runs: {label}", parts)


def share(part: float, label: str) -> Markup:
    """A part of a whole, 0 to 1."""
    width = 100 * min(1.0, max(0.0, part))
    return _fluid("share", label, [_bar("scale", 0, 100, 0, "100%"), _bar("running", 0, width, 0, "100%")])


class Range(NamedTuple):
    """The range of scores to show, turned so that higher is better."""

    sign: int
    low: float
    high: float

    @classmethod
    def of(cls, thresholds: Mapping[str, float], lower: bool, scores: Sequence[float]) -> "Range":
        """From below the median to beyond gold, extended to the scores unless they are far away."""
        sign = -1 if lower else 1
        middle, gold = sign * thresholds["median"], sign * thresholds["gold"]
        span = (gold - middle) or abs(gold) * 0.1 or 1.0
        near = [sign * score for score in scores if middle - 2 * span <= sign * score <= gold + 2 * span]
        low, high = min([middle - span / 2, *near]), max([gold + span / 3, *near])
        return cls(sign, low - (high - low) * 0.06, high + (high - low) * 0.06)

    def place(self, score: float) -> float:
        """0 to 1; scores outside the range are at the edge."""
        return min(1.0, max(0.0, (self.sign * score - self.low) / (self.high - self.low)))

    def mark(self, score: float) -> str:
        """The class of a score's point: hollow if the score is beyond the edge."""
        return "ours" if self.low <= self.sign * score <= self.high else "ours off"


def is_beyond(scores: Sequence[float], thresholds: Mapping[str, float], lower: bool) -> bool:
    """Whether some of these scores are too far away to be drawn in place."""
    shown = Range.of(thresholds, lower, scores)
    return any(shown.mark(score) != "ours" for score in scores)


def scale(score: float | None, thresholds: Mapping[str, float], lower: bool) -> Markup:
    """The scores that earn medals, better ones further to the right, and the run's own."""
    shown = Range.of(thresholds, lower, [] if score is None else [score])
    edges = [0.0, *(100 * shown.place(thresholds[name]) for name in reversed(LINES)), 100.0]
    zones = ("below", *reversed(LINES))
    parts = [
        _bar(f"zone {name}", left, right - left, 12, "14")
        for name, left, right in zip(zones, edges, edges[1:], strict=False)
        if right > left
    ]
    label = ", ".join(f"{name} at {thresholds[name]:g}" for name in LINES)
    if score is not None:
        at = min(99.2, max(0.8, 100 * shown.place(score)))
        parts.append(f'<line class="ours" x1="{at:.2f}%" x2="{at:.2f}%" y1="7" y2="30"/>')
        parts.append(f'<circle class="{shown.mark(score)}" cx="{at:.2f}%" cy="6" r="5"/>')
        label += f"; this run at {score:g}"
    return _fluid("medal-scale", label, parts)


def timeline(attempts: Sequence[AttemptView], kept: Sequence[float], begin: float, end: float) -> Markup:
    """Attempts as bars, and above them the kept submissions; all times in seconds."""
    whole = max(end - begin, 0.001)
    parts = ['<line class="axis" x1="0%" x2="100%" y1="27" y2="27"/>']
    for attempt in attempts:
        left = 100 * (attempt.begin - begin) / whole
        width = max(0.4, 100 * (attempt.end - attempt.begin) / whole)
        ended = attempt.ended
        name = "running" if ended is None else ended if ended in UNHARMED else "failed"
        parts.append(_bar(f"attempt {name}", min(left, 99.6), width, 20, "14"))
    parts += [f'<circle class="kept" cx="{100 * (at - begin) / whole:.2f}%" cy="8" r="4"/>' for at in kept]
    label = f"{len(attempts)} attempts, {len(kept)} submissions kept"
    return _fluid("timeline", label, parts)


def over_time(points: Sequence[ScorePoint], thresholds: Mapping[str, float], lower: bool, seconds: float) -> Markup:
    """The score of the submission at each moment, with the scores that earn medals."""
    scores = [point.score for point in points if point.score is not None]
    shown = Range.of(thresholds, lower, scores)
    heights = {name: _height(shown, thresholds[name]) for name in LINES}
    parts = [
        f'<line class="line {name}" x1="0%" x2="100%" y1="{heights[name]:.1f}" y2="{heights[name]:.1f}"/>'
        for name in reversed(LINES)
    ]
    whole = max(seconds, *(point.seconds for point in points), 0.001)
    parts += _steps(points, shown, whole)
    for name, y in _apart(heights).items():
        text = f"{name} {thresholds[name]:g}"
        parts.append(f'<text class="{name}" x="100%" y="{y - 4:.1f}" text-anchor="end">{text}</text>')
    label = f"{len(points)} submissions" + (f", the last score {scores[-1]:g}" if scores else "")
    return _fluid("over-time", label, parts)


def _steps(points: Sequence[ScorePoint], shown: Range, whole: float) -> Iterator[str]:
    before = None
    for point, following in zip(points, [*points[1:], None], strict=True):
        if point.score is None:
            before = None
            continue
        x, y = 100 * point.seconds / whole, _height(shown, point.score)
        until = 100.0 if following is None else 100 * following.seconds / whole
        if before is not None:
            yield f'<line class="step" x1="{x:.2f}%" x2="{x:.2f}%" y1="{before:.1f}" y2="{y:.1f}"/>'
        yield f'<line class="step" x1="{x:.2f}%" x2="{until:.2f}%" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield (
            f'<circle class="{shown.mark(point.score)}" cx="{x:.2f}%" cy="{y:.1f}" r="4">'
            f"<title>{point.score:g} after {point.seconds:,.0f} s</title></circle>"
        )
        before = y


def _height(shown: Range, score: float) -> float:
    return HEIGHT - 6 - (HEIGHT - 24) * shown.place(score)


def _apart(heights: Mapping[str, float]) -> dict[str, float]:
    """Move labels apart, from the lowest up, so that none covers another."""
    places: dict[str, float] = {}
    free = HEIGHT
    for name, y in sorted(heights.items(), key=lambda item: -item[1]):
        places[name] = min(y, free)
        free = places[name] - LABEL
    return places


def _bar(name: str, left: float, width: float, y: float, height: str) -> str:
    return f'<rect class="{name}" x="{left:.2f}%" y="{y:g}" width="{width:.2f}%" height="{height}"/>'


def _fluid(name: str, label: str, parts: Sequence[str]) -> Markup:
    opening = Markup('<svg class="drawing fluid {}" role="img" aria-label="{}">').format(name, label)
    return opening + Markup("".join(parts) + "</svg>")  # noqa: S704 only numbers and our own words
