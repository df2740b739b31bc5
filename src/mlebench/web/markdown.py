"""Renders descriptions, which are Markdown, as HTML: no raw HTML, no images, and only links to the web."""

from functools import cache
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markupsafe import Markup


def to_html(text: str) -> Markup:
    """Headings rank below those of the surrounding page."""
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 what is not Markdown is escaped


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")
    parser.validateLink = lambda url: urlsplit(url).scheme in ("http", "https")
    return parser
