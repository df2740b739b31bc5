"""Drawings, as SVG inside a page. Colours come from the stylesheet, by class, so that they follow light and dark."""

from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup

from mlebench.web.views import AgentRuns, Distribution

BAR = 100.0  # the width of a bar's scale, in its own units


def interval(mean: float, sem: float | None, low: float, high: float) -> Markup:
    """A mean in percent as a bar, ± its standard error as a whisker, and its interval as a band."""
    parts = [
        f'<rect class="scale" x="0" y="0" width="{BAR:g}" height="14"/>',
        f'<rect class="bar" x="0" y="3" width="{mean:.2f}" height="8"/>',
        f'<rect class="band" x="{low:.2f}" y="5" width="{max(0.4, high - low):.2f}" height="4"/>',
    ]
    if sem:
        left, right = max(0.0, mean - sem), min(BAR, mean + sem)
        parts.append(f'<path class="whisker" d="M{left:.2f} 7H{right:.2f}M{left:.2f} 4V10M{right:.2f} 4V10"/>')
    parts.append(f'<path class="mean" d="M{mean:.2f} 2V12"/>')
    label = f"{mean:.1f}" + (f" ± {sem:.1f}" if sem is not None else "") + f", interval {low:.1f} to {high:.1f}"
    return _svg("interval", BAR, 14, label, parts)


def _svg(name: str, width: float, height: float, label: str, parts: Sequence[str]) -> Markup:
    """Stretched to the available width; strokes keep their width."""
    opened = Markup(
        '<svg class="drawing {}" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">'
    )
    return opened.format(name, f"{width:g}", f"{height:g}", label) + _drawn(parts)


MEDAL_LINES = ("gold", "silver", "bronze", "median")
LABEL, HISTOGRAM, GAP, LANE = 15, 90, 12, 25  # heights, in pixels
LEFT, ROOM = 4.0, 94.0  # of the scale, in percent of the width; worse scores are drawn left of it


def leaderboard(distribution: Distribution, thresholds: Mapping[str, float], agents: Sequence[AgentRuns]) -> Markup:
    """Human scores, better to the right, with medal lines, and a lane of dots for each agent."""
    start, end = distribution.start, distribution.end

    def x_of(score: float) -> float:
        """In percent of the width; scores off the scale are drawn at its edge."""
        share = (score - start) / (end - start) if end != start else 1.0
        return LEFT + ROOM * min(1.0, max(-0.025, share))

    base = LABEL * len(MEDAL_LINES) + HISTOGRAM
    lanes = base + GAP
    height = lanes + LANE * len(agents) + 20
    parts = _histogram(distribution, base)
    for number, name in enumerate(MEDAL_LINES):
        parts += _medal_line(name, thresholds[name], x_of(thresholds[name]), LABEL * number, height - 18)
    for number, agent in enumerate(agents):
        parts += _lane(agent, x_of, lanes + LANE * number + LANE / 2)
    parts.append(f'<text class="label" x="{LEFT}%" y="{height - 4}" text-anchor="start">{start:g}</text>')
    parts.append(f'<text class="label" x="{LEFT + ROOM}%" y="{height - 4}" text-anchor="end">{end:g} (best)</text>')
    label = f"Human scores from {start:g} to {end:g}; " + ", ".join(f"{k} {v:g}" for k, v in thresholds.items())
    return _plain_svg("leaderboard", height, label, parts)


def _histogram(distribution: Distribution, base: float) -> list[str]:
    counts, worse = distribution.counts, distribution.worse
    width = ROOM / len(counts)
    unit = HISTOGRAM / max(*counts, worse, 1)
    bars = [(1.0, worse), *((LEFT + width * number, count) for number, count in enumerate(counts))]
    return [
        f'<rect class="people" x="{left:.2f}%" y="{base - unit * count:.1f}" '
        f'width="{max(0.2, width - 0.15):.2f}%" height="{unit * count:.1f}"/>'
        for left, count in bars
        if count
    ]


def _medal_line(name: str, score: float, x: float, top: float, bottom: float) -> list[str]:
    side, shift = ("end", -6) if x > 50 else ("start", 6)
    return [
        f'<line class="line {name}" x1="{x:.2f}%" x2="{x:.2f}%" y1="{top + 4}" y2="{bottom}"/>',
        f'<text class="label {name}" x="{x:.2f}%" dx="{shift}" y="{top + 12}" text-anchor="{side}">'
        f"{name} {score:g}</text>",
    ]


def _lane(agent: AgentRuns, x_of: Callable[[float], float], y: float) -> list[str]:
    dots = [
        f'<circle class="dot {run.result}" cx="{x_of(run.score):.2f}%" cy="{y:.1f}" r="5"/>'
        for run in agent.runs
        if run.score is not None
    ]
    model = Markup('<tspan class="model"> · {}</tspan>').format(agent.model_beside) if agent.model_beside else ""
    name = Markup('<text class="name" x="4" y="{}">{}{}</text>').format(f"{y - 8:.1f}", agent.agent, model)
    return [f'<line class="lane" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>', str(name), *dots]


def difference(value: float) -> Markup:
    """A bar for a difference of percentages: to the right if the first is ahead."""
    left, width = (50 + min(0.0, value) / 2, abs(value) / 2)
    side = "ahead" if value > 0 else "behind"
    parts = [
        '<rect class="scale" x="0" y="4" width="100%" height="8"/>',
        f'<rect class="{side}" x="{left:.2f}%" y="4" width="{width:.2f}%" height="8"/>',
        '<line class="whisker" x1="50%" x2="50%" y1="1" y2="15"/>',
    ]
    return _plain_svg("difference", 16, f"{value:+.1f}", parts)


def estimate(mean: float, low: float, high: float, most: float) -> Markup:
    """A difference with its interval, on a scale from -most to most."""

    def x_of(value: float) -> float:
        return 50 + 49 * max(-1.0, min(1.0, value / most))

    parts = [
        '<rect class="scale" x="0" y="6" width="100%" height="8"/>',
        f'<rect class="band" x="{x_of(low):.2f}%" y="7" width="{x_of(high) - x_of(low):.2f}%" height="6"/>',
        '<line class="zero" x1="50%" x2="50%" y1="0" y2="20"/>',
        f'<circle class="point" cx="{x_of(mean):.2f}%" cy="10" r="5"/>',
    ]
    return _plain_svg("estimate", 20, f"{mean:+.2f}, interval {low:.2f} to {high:.2f}", parts)


def _plain_svg(name: str, height: float, label: str, parts: Sequence[str]) -> Markup:
    """As wide as the available space: x is in percent, y in pixels, so that text keeps its size."""
    opened = Markup('<svg class="drawing {}" width="100%" height="{}" role="img" aria-label="{}">')
    return opened.format(name, f"{height:g}", label) + _drawn(parts)


def _drawn(parts: Sequence[str]) -> Markup:
    return Markup("".join(parts) + "</svg>")  # noqa: S704 numbers and our own words; names were escaped
