"""Familiarity against performance, drawn: for a terminal, and as a self-contained SVG file."""

from collections.abc import Sequence
from html import escape

from mlebench.integrity.familiarity.performance import Correlation, Point

WIDTH, HEIGHT, MARGIN = 640, 400, 60
COLUMNS, LINES = 60, 15
X, Y = "difference between original and control", "share of the way from sample to gold"
_STYLE = (
    "text{font:12px sans-serif;fill:#333}.axis{stroke:#999}.dot{fill:#2b6cb0;fill-opacity:.75}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.dot{fill:#90cdf4}}"
)


def _scales(points: Sequence[Point]) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ranges of both axes; the second includes 0 and 1."""
    return _span([p.familiarity for p in points] + [0.0]), _span([p.performance for p in points] + [0.0, 1.0])


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _share(value: float, span: tuple[float, float]) -> float:
    return (value - span[0]) / (span[1] - span[0])


def in_terminal(points: Sequence[Point]) -> list[str]:
    """A grid of characters; a digit counts the competitions in one place."""
    across, up = _scales(points)
    grid = [[0] * COLUMNS for _ in range(LINES)]
    for point in points:
        column = round(_share(point.familiarity, across) * (COLUMNS - 1))
        line = LINES - 1 - round(_share(point.performance, up) * (LINES - 1))
        grid[line][column] += 1
    shown = ["".join(" " if not count else "o" if count == 1 else str(min(9, count)) for count in row) for row in grid]
    labels = [f"{up[1]:8.2f}", *[" " * 8] * (LINES - 2), f"{up[0]:8.2f}"]
    axis = f"{across[0]:<+10.2f}{X:^{COLUMNS - 20}}{across[1]:>+10.2f}"
    return [
        Y,
        *(f"{label} |{row}".rstrip() for label, row in zip(labels, shown, strict=True)),
        f"{'':8} +{'-' * COLUMNS}",
        f"{'':10}{axis}",
    ]


def svg(correlations: Sequence[Correlation]) -> str:
    """One drawing per agent, stacked."""
    drawings = "".join(
        f'<g transform="translate(0 {number * HEIGHT})">{_drawing(correlation)}</g>'
        for number, correlation in enumerate(correlations)
    )
    height = HEIGHT * max(1, len(correlations))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">'
        f"<style>{_STYLE}</style>{drawings}</svg>\n"
    )


def _drawing(correlation: Correlation) -> str:
    across, up = _scales(correlation.points)
    right, bottom = WIDTH - 20, HEIGHT - MARGIN

    def x(value: float) -> float:
        return MARGIN + _share(value, across) * (right - MARGIN)

    def y(value: float) -> float:
        return bottom - _share(value, up) * (bottom - 40)

    title = (
        f"{correlation.agent}: Spearman {correlation.estimate}, n = {len(correlation.points)}"
        if correlation.estimate
        else correlation.agent
    )
    parts = [
        f'<text x="{MARGIN}" y="20">{escape(title)}</text>',
        f'<path class="axis" d="M{MARGIN} 40V{bottom}H{right}" fill="none"/>',
        f'<path class="axis" d="M{x(0):.1f} 40V{bottom}" stroke-dasharray="3"/>',
        f'<text x="{MARGIN}" y="{bottom + 18}">{across[0]:+.2f}</text>',
        f'<text x="{right}" y="{bottom + 18}" text-anchor="end">{across[1]:+.2f}</text>',
        f'<text x="{(MARGIN + right) / 2}" y="{bottom + 36}" text-anchor="middle">{X}</text>',
        f'<text x="{MARGIN - 6}" y="{bottom}" text-anchor="end">{up[0]:.2f}</text>',
        f'<text x="{MARGIN - 6}" y="46" text-anchor="end">{up[1]:.2f}</text>',
        f'<text transform="translate(16 {bottom}) rotate(-90)">{Y}</text>',
    ]
    for point in correlation.points:
        label = escape(f"{point.competition}: {point.familiarity:+.3f}, {point.performance:.3f}")
        position = f'cx="{x(point.familiarity):.1f}" cy="{y(point.performance):.1f}"'
        parts.append(f'<circle class="dot" {position} r="4"><title>{label}</title></circle>')
    return "".join(parts)
