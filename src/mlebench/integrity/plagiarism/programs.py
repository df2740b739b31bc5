"""Code in files that others wrote: a program, or the code cells of a notebook. Lines keep their numbers."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from mlebench.core.untrusted import parse_json
from mlebench.integrity.notebooks import cells_of
from mlebench.integrity.subjects import AgentFile

PROGRAM, NOTEBOOK = ".py", ".ipynb"
LARGEST_CODE = 1 << 20  # bytes of code in a file that are read
LARGEST_NOTEBOOK = 64 << 20  # bytes; a large one is mostly pictures
_LOOKED_AT = 8192  # bytes, to tell text from binary

_CELL_MAGIC = re.compile(r"\s*%%(\w+)[ \t]*([^\n]*)")
# Cells with these magics still hold code; after others comes another language or text.
_AROUND_CODE = {"time", "timeit", "capture", "prun", "python", "python3", "pypy", "debug"}
_WRITES = {"writefile", "file"}
_TIMED = re.compile(r"^(\s*)%(?:time|timeit|prun)\b(?:[ \t]+-\w+(?:[ \t]+\d+)?)*[ \t]*")
_MAGIC = re.compile(r"^\s*(?:[!?]|%{1,2}[A-Za-z])|^[^#'\"]*\?\s*$")
_ASSIGNED = re.compile(r"^(\s*[\w ,.\[\]]+=\s*)[!%].*")


class NoCodeError(Exception):
    """There is nothing to compare; the message completes the sentence "This file …"."""


@dataclass(frozen=True)
class Program:
    text: str
    cells: tuple[int, ...] = ()  # of a notebook: the line on which each code cell begins, from 0
    numbers: tuple[int, ...] = ()  # and its number among all cells, from 1
    cut: bool = False

    def place(self, line: int) -> tuple[int | None, int]:
        """The cell of a line and its number there, both from 1; without cells, its number in the file."""
        if not self.cells:
            return None, line + 1
        index = max(0, bisect_right(self.cells, line) - 1)
        return self.numbers[index], line - self.cells[index] + 1


def is_code(name: str) -> bool:
    return suffix_of(name) in (PROGRAM, NOTEBOOK)


def suffix_of(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def read_program(source: AgentFile) -> Program:
    limit = LARGEST_NOTEBOOK if suffix_of(source.name) == NOTEBOOK else LARGEST_CODE
    data = source.read(limit + 1)
    if not data:
        raise NoCodeError("is empty or cannot be read")
    if b"\0" in data[:_LOOKED_AT]:
        raise NoCodeError("is not text")
    if suffix_of(source.name) != NOTEBOOK:
        return Program(data[:limit].decode("utf-8", "replace"), cut=len(data) > limit)
    if len(data) > limit:
        raise NoCodeError(f"is a notebook of more than {limit >> 20} MiB")
    return of_notebook(data)


def of_notebook(data: bytes) -> Program:
    """The code cells of a notebook, one after the other, without what only IPython understands."""
    lines: list[str] = []
    starts, numbers, room = [], [], LARGEST_CODE
    for number, text in _code_cells(data):
        if len(text) > room:
            return Program("\n".join(lines), tuple(starts), tuple(numbers), cut=True)
        room -= len(text)
        starts.append(len(lines))
        numbers.append(number)
        lines += without_magics(text)
    return Program("\n".join(lines), tuple(starts), tuple(numbers))


def _code_cells(data: bytes) -> Iterator[tuple[int, str]]:
    try:
        notebook = parse_json(data)
        if _language(notebook) not in (None, "python"):
            raise NoCodeError("is a notebook in a language other than Python")
        yield from ((cell.number, cell.source) for cell in cells_of(notebook) if cell.is_code)
    except (ValueError, AttributeError):
        raise NoCodeError("is a broken notebook") from None


def _language(notebook: dict[str, Any]) -> str | None:
    about = notebook.get("metadata") or {}
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        section = about.get(key)
        if isinstance(section, dict) and isinstance(section.get(name), str):
            return section[name].lower()
    return None


def without_magics(cell: str) -> list[str]:
    """The lines of a cell. Those with magics and shell commands are empty; a timed statement stays."""
    lines = cell.split("\n")
    if (magic := _CELL_MAGIC.match(cell)) and not _keeps_code(magic[1], magic[2]):
        return [""] * len(lines)
    code_lines, is_continued = [], False
    for line in lines:
        bare = _ASSIGNED.sub(r"\1None", _TIMED.sub(r"\1", line))
        is_magic = is_continued or bool(_MAGIC.match(bare))
        is_continued = is_magic and line.endswith("\\")
        code_lines.append("" if is_magic else bare)
    return code_lines


def _keeps_code(magic: str, argument: str) -> bool:
    return magic in _AROUND_CODE or (magic in _WRITES and argument.strip().endswith(PROGRAM))
