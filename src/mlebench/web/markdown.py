"""Descriptions, which are Markdown, as HTML: no markup of their own, no images, no links but to the web."""

from functools import cache
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markupsafe import Markup


def to_html(text: str) -> Markup:
    return Markup(_parser().render(text))  # noqa: S704 the parser escapes what is not Markdown


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")
    parser.validateLink = lambda url: urlsplit(url).scheme in ("http", "https")  # type: ignore[method-assign]
    return parser
