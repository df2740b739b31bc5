"""Reads JSON lines that an agent may have written: bounded, without trust, and with a count of what was left out."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from mlebench.core.untrusted import FileMissingError, UntrustedFileError, open_untrusted, parse_json, plain

MOST_BYTES = 256 << 20  # of a file; the rest is left out
LONGEST_LINE = 4 << 20  # bytes
_LARGEST_NUMBER = 1e15


@dataclass
class SkippedContent:
    """What readers of a file do not get to see."""

    lines: int = 0  # that are not JSON objects, or too long
    bytes: int = 0  # beyond the limit
    fault: str | None = None  # why nothing could be read at all


def read_objects(path: Path, omitted: SkippedContent) -> Iterator[dict[str, Any]]:
    """The objects of a file, line by line; none if the file does not exist."""
    try:
        file = open_untrusted(path, 1 << 60)
    except UntrustedFileError as error:
        if not isinstance(error, FileMissingError) or os.path.lexists(path):
            omitted.fault = str(error)
        return
    with file:
        for line in _lines(file, omitted):
            if isinstance(value := parsed(line), dict):
                yield value
            else:
                omitted.lines += 1


def _lines(file: BinaryIO, omitted: SkippedContent) -> Iterator[bytes]:
    """Lines that are not blank; one that is too long is only counted."""
    while file.tell() < MOST_BYTES and (line := file.readline(LONGEST_LINE)):
        end = line
        while len(end) == LONGEST_LINE and not end.endswith(b"\n") and file.tell() < MOST_BYTES:
            line, end = b"too long", file.readline(LONGEST_LINE)
        if line.strip():
            yield line
    omitted.bytes = max(0, os.fstat(file.fileno()).st_size - MOST_BYTES)


def parsed(line: bytes) -> Any:
    """The value of a line; None if it is not JSON."""
    try:
        return parse_json(line)
    except ValueError:
        return None


def number(value: Any) -> float | int | None:
    """A number that can be shown and added up; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < _LARGEST_NUMBER else None  # excludes NaN and infinity too


def title(value: Any, longest: int = 200) -> str:
    """A short text on one line."""
    text = value if isinstance(value, str) else "" if value is None else as_json(value)
    return " ".join(plain(text[: longest * 4]).split())[:longest]


def as_json(value: Any) -> str:
    """A value that came from JSON, as text; it was parsed, so it is not nested too deeply."""
    return json.dumps(value, ensure_ascii=False)
