"""What a run left, or has so far, read within bounds and as text. All of it is hostile, even file names."""

import csv
import math
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import LFS_POINTER, is_lfs_pointer
from mlebench.core.paths import RUN_LOG
from mlebench.core.untrusted import ANY_SIZE, UntrustedFileError, kind_of, one_line, open_below, parse_json, plain, walk
from mlebench.records.run import RUNNING
from mlebench.records.run_groups import Group, Run

MOST_FILES = 300  # listed, of each folder
MOST_ENTRIES = 5000  # looked at, of each folder that is listed
DEEPEST = 24
LONGEST_NAME = 200
LONGEST_CELL = 60
MOST_ROWS, MOST_COLUMNS = 10, 12
HEAD_OF_TABLE = 64 << 10


@dataclass(frozen=True)
class AttemptFiles:
    """Where the files of a run's last attempt are."""

    base: Path
    home: str = ""  # where in it the agent's own folders are
    inside: str | None = ""  # its path in the run's folder; None while the attempt is running elsewhere
    attempt: int | None = None  # one that failed

    @classmethod
    def of(cls, group: Group, run: Run) -> "AttemptFiles":
        attempts = run.record.attempts
        if run.record.state == RUNNING and attempts:
            work = group.paths.work(attempts[-1].token)
            if work.is_dir() and not work.is_symlink():  # otherwise its result is being moved into place
                return cls(work, "home/", None)
        failed = run.paths.attempt(len(attempts))
        if attempts and not run.paths.log.exists() and (failed / RUN_LOG).exists():
            return cls(failed, "", f"{failed.relative_to(run.paths.root)}/", len(attempts))
        return cls(run.paths.root)


@dataclass(frozen=True)
class ListedFile:
    name: str  # on one line
    size: int | None
    kind: str | None  # what it is, if it is no regular file
    path: str


@dataclass
class Listing:
    """The files below a folder."""

    files: list[ListedFile] = field(default_factory=list)  # the first ones
    count: int = 0
    bytes: int = 0
    is_whole: bool = True  # whether all were counted

    def add(self, name: str, status: os.stat_result) -> None:
        self.count += 1
        regular = stat.S_ISREG(status.st_mode)
        self.bytes += status.st_size if regular else 0
        if len(self.files) < MOST_FILES:
            kind = None if regular else kind_of(status.st_mode)
            size = status.st_size if regular else None
            self.files.append(ListedFile(one_line(name, LONGEST_NAME), size, kind, name))


def listing(base: Path, name: str) -> Listing:
    """The files of a folder in `base`, by name. Links are neither followed nor hidden."""
    files, steps = Listing(), name.split("/")
    for parts, status, _, error in walk(base, *steps, deepest=DEEPEST, most=MOST_ENTRIES):
        if status:
            files.add("/".join(parts[len(steps) :]), status)
        elif error is None:
            files.is_whole = False
    return files


@dataclass(frozen=True)
class FileText:
    """A part of a file in a form that is safe to show."""

    text: str = ""
    size: int = 0
    cut: bool = False  # whether there is more
    fault: str | None = None  # why nothing is shown


@dataclass(frozen=True)
class TablePreview:
    """The first rows and columns of a CSV file."""

    size: int
    fault: str | None
    header: list[str]
    rows: list[list[str]]
    columns: int  # of the whole table
    cut: bool  # whether there are more rows


def head(base: Path, name: str, longest: int) -> FileText:
    data, size, fault = _read(base, name, longest, end=False)
    if fault is None and b"\0" in data:
        fault = "is not text"
    if is_lfs_pointer(data):
        fault = LFS_POINTER
    if fault:
        return FileText(size=size, fault=fault)
    return FileText(plain(data.decode("utf-8", "replace")), size, size > len(data))


def tail(base: Path, name: str, longest: int) -> FileText:
    """The end of a log. A line that was overwritten repeatedly, like a progress bar, appears in its last state."""
    data, size, fault = _read(base, name, longest, end=True)
    if fault:
        return FileText(size=size, fault=fault)
    if size > len(data):
        data = data.partition(b"\n")[2] or data  # the first line has lost its beginning
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in data.decode("utf-8", "replace").split("\n"))
    return FileText(plain("\n".join(lines)), size, size > len(data))


def _read(base: Path, name: str, longest: int, *, end: bool) -> tuple[bytes, int, str | None]:
    try:
        with open_below(base, name.split("/"), ANY_SIZE) as file:
            size = os.fstat(file.fileno()).st_size
            if end:
                file.seek(max(0, size - longest))
            return file.read(longest), size, None
    except UntrustedFileError as error:
        return b"", 0, str(error)
    except (PrerequisiteError, OSError):
        return b"", 0, "cannot be read"


def preview_table(base: Path, name: str) -> TablePreview:
    content = head(base, name, HEAD_OF_TABLE)
    lines = content.text.splitlines(keepends=True)
    if content.cut and len(lines) > 1:
        lines.pop()
    rows = list(_rows(lines))
    columns = max(map(len, rows), default=0)
    cells = [[one_line(cell, LONGEST_CELL) for cell in row[:MOST_COLUMNS]] for row in rows]
    return TablePreview(
        size=content.size,
        fault=content.fault,
        header=cells[0] if cells else [],
        rows=cells[1:],
        columns=columns,
        cut=content.cut or len(rows) < len(lines),
    )


def _rows(lines: Iterable[str]) -> Iterator[list[str]]:
    with suppress(csv.Error):
        yield from islice(csv.reader(lines), MOST_ROWS + 1)


def json_of(base: Path, name: str, longest: int, longest_text: int = 4000) -> Any:
    """The content of a JSON file in a form that is safe to show; None if it is not JSON."""
    data, size, fault = _read(base, name, longest, end=False)
    if fault or size > len(data):
        return None
    try:
        return shown(parse_json(data), longest_text)
    except ValueError:
        return None


def shown(value: Any, longest: int = 4000, depth: int = 12) -> Any:
    """A record's value as plain JSON that is safe to show: texts are bounded and plain, numbers are finite."""
    if isinstance(value, str):
        return plain(value[:longest]) + ("…" if len(value) > longest else "")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict | list | tuple) and not depth:
        return "…"
    if isinstance(value, dict):
        items = islice(value.items(), 500)
        return {one_line(key, LONGEST_NAME): shown(item, longest, depth - 1) for key, item in items}
    if isinstance(value, list | tuple):
        return [shown(item, longest, depth - 1) for item in islice(value, 1000)]
    return value if isinstance(value, bool | int | None) else str(value)


def address(group: str, run: str, path: str) -> str | None:
    """The address of a run's file; None if its name is not text."""
    try:
        return f"files/{quote(group, safe='')}/{quote(run, safe='')}/{quote(path)}"
    except UnicodeEncodeError:
        return None
