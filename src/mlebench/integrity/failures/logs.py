"""What agents print, as lines that can be searched and shown: bounded, without escape codes and control characters."""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath

from mlebench.core.paths import RUN_LOG
from mlebench.integrity.subjects import Source

HEAD, TAIL = 64 << 10, 256 << 10  # bytes of a log that are read
MOST_LOGS = 20
LONGEST_LINE = 1000  # characters
SUFFIXES = (".log", ".txt", ".out", ".err", "")

# Colours and the like. Lengths are bounded, so that no text makes this slow.
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]{0,30}[ -/]{0,3}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """A text that can be shown and written anywhere."""
    return _CONTROL.sub("", _ESCAPES.sub("", text)).encode("utf-8", "replace").decode("utf-8")


def lines_of(source: Source) -> list[str]:
    """A log's first and last lines. Text overwritten after a carriage return, as by bars, is a separate line."""
    head, tail = source.ends(HEAD, TAIL)
    return [*_lines(head), *_lines(tail)]


def _lines(content: bytes) -> Iterator[str]:
    text = _ESCAPES.sub("", content.decode("utf-8", "replace"))
    for line in re.split(r"[\r\n]", text):
        if shown := _CONTROL.sub("", line[:LONGEST_LINE]).rstrip():
            yield shown


def logs_in_order(sources: Iterable[Source]) -> list[Source]:
    """Printed output first, then other logs by name, up to a maximum."""
    logs = [source for source in sources if PurePath(source.name).suffix.lower() in SUFFIXES]
    return sorted(logs, key=lambda source: (source.name != RUN_LOG, source.name))[:MOST_LOGS]
