"""Runs that share a disk: each supervisor notes what its run has written, so that all agree on who has filled the disk.

A note is a small file in a run's working folder, for which room is reserved before the start. All runs of a runs
directory see each other's notes, from whatever host, group or command they were started.
"""

import contextlib
import glob
import json
import os
from pathlib import Path
from typing import Literal, NamedTuple

from mlebench.core.os_errors import DiskSpace

NOTE_SIZE = 512  # bytes reserved for a note
FRESH = 60.0  # seconds: an older note is of a dead supervisor, or of a run that has ended and had time to be stored
THIS_RUN, OTHER_RUNS, OTHERS = "this run", "other runs", "others"  # who filled a disk


class DiskNote(NamedTuple):
    """What a run has written since its start, now and when the disk became full.

    The latter decides which run has written most: it does not change, so that all supervisors see the same.
    """

    run: str
    free_at_start: DiskSpace
    written: DiskSpace = DiskSpace(0, 0)
    written_when_full: DiskSpace = DiskSpace(0, 0)
    may_hide: bool = False  # it may hold deleted files where we cannot see them


class DiskNotes:
    """A run's own note, and those of the runs beside it."""

    def __init__(self, file: str, pattern: str, free_at_start: DiskSpace):
        self._path, self._pattern = file, pattern
        self._file = os.open(file, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644)
        self.own = DiskNote(Path(file).parent.name, free_at_start)
        self.write(self.own)

    def write(self, note: DiskNote) -> DiskNote:
        """Write over the last note, which takes no space."""
        self.own = note
        with contextlib.suppress(OSError):
            os.pwrite(self._file, json.dumps(note._asdict()).encode().ljust(NOTE_SIZE), 0)
        return note

    def read(self) -> tuple[list[DiskNote], list[DiskNote]]:
        """The notes of all other runs on this disk, and those of them that are fresh. Only the disk's clock counts."""
        ours = os.fstat(self._file)
        notes, fresh = [], []
        for path in sorted(set(glob.glob(self._pattern)) - {self._path}):  # noqa: PTH207 the pattern is absolute
            with contextlib.suppress(OSError, ValueError, TypeError), open(path, "rb") as file:  # noqa: PTH123
                status, values = os.fstat(file.fileno()), json.loads(file.read(NOTE_SIZE))
                if status.st_dev != ours.st_dev:
                    continue
                spaces = {name: DiskSpace(*values[name]) for name in ("free_at_start", "written", "written_when_full")}
                notes.append(DiskNote(**(values | spaces)))
                if status.st_mtime > ours.st_mtime - FRESH:
                    fresh.append(notes[-1])
        return notes, fresh


class DiskShortage(NamedTuple):
    """A disk that is nearly full, and what was written to it since the first of our runs on it was started.

    If our runs wrote at least half of that, they filled the disk, and the one that wrote most has to end. Its note
    remains while its result is stored, so that no other run ends meanwhile.
    """

    unit: Literal["bytes", "files"]
    free: int
    own: DiskNote
    runs: tuple[DiskNote, ...]  # other runs
    is_agreed: bool  # whether the other runs had time to note what they wrote

    def _written(self, note: DiskNote) -> int:
        return getattr(note.written, self.unit)

    @property
    def lost(self) -> int:
        return max(getattr(note.free_at_start, self.unit) for note in (self.own, *self.runs)) - self.free

    @property
    def is_ours(self) -> bool:
        return 2 * sum(map(self._written, (self.own, *self.runs))) >= self.lost

    @property
    def is_own(self) -> bool:
        return self.is_ours and self._is_largest(self.runs)

    @property
    def is_suspect(self) -> bool:
        """Whether the sandbox has to be ended to see how much that frees: one at a time, or we could not tell."""
        hiding = tuple(note for note in self.runs if note.may_hide)
        return self.is_agreed and not self.is_ours and self.own.may_hide and self._is_largest(hiding)

    def _is_largest(self, notes: tuple[DiskNote, ...]) -> bool:
        return all(self._rank(note) < self._rank(self.own) for note in notes)

    def _rank(self, note: DiskNote) -> tuple[int, str]:
        return getattr(note.written_when_full, self.unit), note.run

    @property
    def by(self) -> str:
        return THIS_RUN if self.is_own else OTHER_RUNS if self.is_ours else OTHERS

    def __str__(self) -> str:
        own, lost = self._written(self.own), self.lost
        free, share = f"{self.free} inodes are free", f"{own} of {lost}"
        if self.unit == "bytes":
            free, share = f"{self.free >> 20} MiB are free", f"{own >> 20} of {lost >> 20} MiB"
        by = self.by
        if self.is_own and 2 * own < lost:
            by = "runs of mlebench, this one more than any other,"
        return f"the disk is nearly full ({free}), and {by} filled it meanwhile ({share} are its own)"
