"""Drawings, as SVG inside a page. Colours come from the stylesheet, by class, so that they follow light and dark."""

from collections.abc import Sequence

from markupsafe import Markup

BAR = 100.0  # the width of a bar's scale, in its own units


def interval(mean: float, sem: float | None, low: float, high: float, *, most: float = 100.0) -> Markup:
    """A mean as a bar, ± its standard error as a whisker, and its interval as a band."""
    scale = BAR / most
    parts = [
        f'<rect class="scale" x="0" y="0" width="{BAR:g}" height="14"/>',
        f'<rect class="bar" x="0" y="3" width="{mean * scale:.2f}" height="8"/>',
        f'<rect class="band" x="{low * scale:.2f}" y="5" width="{max(0.4, (high - low) * scale):.2f}" height="4"/>',
    ]
    if sem:
        left, right = max(0.0, mean - sem) * scale, min(most, mean + sem) * scale
        parts.append(
            f'<path class="whisker" d="M{left:.2f} 7H{right:.2f}M{left:.2f} 4V10M{right:.2f} 4V10"/>'
        )
    parts.append(f'<path class="mean" d="M{mean * scale:.2f} 2V12"/>')
    label = f"{mean:.1f}" + (f" ± {sem:.1f}" if sem is not None else "") + f", interval {low:.1f} to {high:.1f}"
    return _svg("interval", BAR, 14, label, parts, stretch=True)


def _svg(name: str, width: float, height: float, label: str, parts: Sequence[str], *, stretch: bool = False) -> Markup:
    shape = ' preserveAspectRatio="none"' if stretch else ""
    box = f'viewBox="0 0 {width:g} {height:g}"{shape}'
    return Markup('<svg class="drawing {}" {} role="img" aria-label="{}">').format(  # noqa: S704
        name, Markup(box), label  # noqa: S704
    ) + Markup("".join(parts) + "</svg>")  # noqa: S704 only numbers and our own words
