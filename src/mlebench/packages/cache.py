"""Files from indexes, by their hash, shared by all runs of this user; the least recently used are removed."""

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from mlebench.core.files import STALE, is_temporary, replacing
from mlebench.core.os_errors import free_space, free_space_floor

LARGEST = 20 << 30  # bytes, of all files


class _Entry(NamedTuple):
    used: float
    size: int
    path: Path


class FileCache:
    def __init__(self, folder: Path, largest: int = LARGEST):
        self._folder, self._largest = folder, largest
        self._checked: set[str] = set()

    def open(self, sha256: str) -> BinaryIO | None:
        """A file with that content; None if it is not there. What was damaged on the disk is removed."""
        path = self._path(sha256)
        try:
            file = path.open("rb")
        except OSError:
            return None
        if sha256 not in self._checked and hashlib.file_digest(file, "sha256").hexdigest() != sha256:
            file.close()
            path.unlink(missing_ok=True)
            return None
        self._checked.add(sha256)
        file.seek(0)
        with suppress(OSError):
            os.utime(path)
        return file

    @contextmanager
    def adding(self, sha256: str) -> Iterator[BinaryIO]:
        """A file to write; it is added if the caller, who checks its hash, raises nothing."""
        path = self._path(sha256)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part, part.open("wb") as file:
            yield file
        self._checked.add(sha256)

    def make_room(self, size: int) -> bool:
        """Remove what was not used for longest until a file of this size fits; False if it cannot fit on the disk."""
        entries = sorted(self._entries())
        total = sum(entry.size for entry in entries)
        for entry in entries:
            if total + size <= self._largest and not self._is_abandoned(entry):
                break
            entry.path.unlink(missing_ok=True)
            total -= entry.size
        self._folder.mkdir(parents=True, exist_ok=True)
        return free_space(self._folder).bytes - size > free_space_floor(self._folder).bytes

    def size(self) -> int:
        return sum(entry.size for entry in self._entries())

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256

    def _entries(self) -> Iterator[_Entry]:
        for path in self._folder.glob("??/*"):
            with suppress(OSError):  # another process has removed it
                status = path.stat()
                yield _Entry(status.st_mtime, status.st_size, path)

    def _is_abandoned(self, entry: _Entry) -> bool:
        """Whether it is what a killed process left of a file."""
        return is_temporary(entry.path.name) and entry.used < time.time() - STALE
