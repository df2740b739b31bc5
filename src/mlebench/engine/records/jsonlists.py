"""JSON files that are one long list, item by item: only a piece of the text and an item are in memory at once."""

import io
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

PIECE_CHARACTERS = 1 << 20  # read at a time
_SPACE = re.compile(r"[ \t\n\r]*")


def json_items(stream: BinaryIO) -> Iterator[Any]:
    """The items of a list; the stream is closed after the last."""
    buffer, at, mark = "", 0, "["
    with io.TextIOWrapper(stream, encoding="utf-8") as text:
        while True:
            try:
                span = _next_item(buffer, at, mark)
            except ValueError:  # perhaps because the piece ends here
                more = text.read(max(PIECE_CHARACTERS, len(buffer) - at))
                if not more:
                    raise
                buffer, at = buffer[at:] + more, 0
                continue
            if span is None:
                return
            item, at = span
            yield item
            mark = ","


def _next_item(text: str, at: int, mark: str) -> tuple[Any, int] | None:
    """The item after a mark, and where the next mark is; None at the end of the list."""
    at = _find(text, at, (mark, "]") if mark == "," else (mark,))
    if text[at] == "]":
        return None
    at = _find(text, at + 1)
    if mark == "[" and text[at] == "]":
        return None
    item, at = json.JSONDecoder().raw_decode(text, at)
    return item, _find(text, at, (",", "]"))  # a number at the end of the piece may be cut in half


def _find(text: str, at: int, wanted: tuple[str, ...] = ("",)) -> int:
    """Where the next character other than white space is; it must be one of the wanted ones."""
    match = _SPACE.match(text, at)
    at = match.end() if match else at
    if at == len(text) or not text.startswith(wanted, at):
        raise json.JSONDecodeError(f"Expecting {' or '.join(wanted) or 'value'}", text, at)
    return at
