"""Renders pages as HTML. Everything shown is escaped; the only exceptions are drawings and descriptions."""

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from mlebench import __version__
from mlebench.records.conditions import time_limit
from mlebench.report.formats import total
from mlebench.web import draw, draw_run
from mlebench.web.site import Page, Site

FOLDER = Path(__file__).parent
ASSETS = FOLDER / "assets"
# For pages that are opened from disk; the server says the same in a header, and more.
POLICY = "default-src 'none'; style-src 'self' file:; script-src 'self' file:; img-src 'self' data:; form-action 'none'"


def to_html(page: Page, site: Site, root: str | None = None) -> str:
    """The page; `root` is where its links begin, if its address is not its path."""
    return (
        _environment()
        .get_template(page.template)
        .render(
            page=page,
            site=site,
            root="../" * page.depth if root is None else root,
            data_path=Path(page.path).with_suffix(".json").name,
            policy=POLICY,
            version=__version__,
            made_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            **({name: getattr(page.view, name) for name in page.view.__struct_fields__} if page.view else {}),
        )
    )


def to_json(page: Page) -> str:
    return json.dumps({"mlebench": __version__, "page": page.title, **page.data}, indent=1, allow_nan=False) + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters = {
        "number": number,
        "signed": signed,
        "sentence": sentence,
        "duration": duration,
        "size": size,
        "score": score,
        "moment": moment,
        "clock": clock,
        "amount": amount,
        "time_limit": time_limit,
        "total": total,
        "markdown": markdown,
    }
    environment.filters |= filters
    environment.globals |= {"draw": draw, "draw_run": draw_run}
    return environment


def markdown(text: str) -> Markup:
    """A description as HTML: no raw HTML or images, links only to the web; headings rank below those of the page."""
    parser = _markdown_parser()
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 what is not Markdown is escaped


@cache
def _markdown_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")
    parser.validateLink = lambda url: urlsplit(url).scheme in ("http", "https")
    return parser


def number(value: float | None, places: int = 2) -> str:
    """A figure, or a dash if it is unknown."""
    return "–" if value is None else f"{value:,.{places}f}"


def score(value: float | None) -> str:
    """A score, with the five decimals that scores have."""
    return "–" if value is None else f"{value:,.5f}".rstrip("0").rstrip(".")


def moment(text: str | None) -> str:
    """A time from a record, to the second."""
    try:
        return datetime.fromisoformat(text or "").astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    except ValueError:
        return "–"


def signed(value: float, places: int) -> str:
    """A difference, with a proper minus sign."""
    return f"{value:+.{places}f}".replace("-", "−")


def sentence(text: str) -> str:
    """A reason or finding, which begins small and has no full stop, as a sentence."""
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "!", "?", "…")) else ".")


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 9.95 else f"{seconds:.1f}".removesuffix(".0") + " s"
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    return f"{minutes} min {int(seconds % 60)} s" if hours < 1 else f"{hours} h {minutes % 60} min"


def clock(seconds: float | None) -> str:
    """A moment of a run: how long after the agent's start, or before it."""
    if seconds is None:
        return ""
    length = duration(abs(seconds))
    return length if length == duration(0) else f"{'−' if seconds < 0 else '+'} {length}"


def amount(value: float | None) -> str:
    """A count of tokens or calls, rounded if it is large."""
    if value is None:
        return "–"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 10 * size:
            return f"{value / size:,.1f} {unit}"
    return f"{value:,.0f}"


def size(value: float | None) -> str:
    if value is None:
        return "–"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
