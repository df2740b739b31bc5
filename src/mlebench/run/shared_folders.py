"""Folders of the host that agents may read below /home: what they may hold, and what identifies them.

`--knowledge` has texts to read, `--weights` has pretrained models. Both are conditions of a run.
"""

import filecmp
import hashlib
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import reason_of
from mlebench.core.untrusted import kind_of
from mlebench.records.group import GroupRecord
from mlebench.registry import Competition
from mlebench.sandbox.base import HOME, Bind, hidden_paths

MOST_READ = 1 << 30  # bytes; beyond, only names and sizes count, since a folder may be as large as a disk


class FolderEntry(NamedTuple):
    name: str  # below the folder
    size: int
    link: str | None  # where a symbolic link points


@dataclass(frozen=True)
class HostFolder(ABC):
    """A folder of the host that runs see: an option of `mlebench run`, and fields in records for path and hash."""

    name: str  # of the option and the fields

    @abstractmethod
    def identity(self, folder: Path) -> str:
        """Equal for folders that make no difference to runs."""

    def path(self, record: GroupRecord) -> Path | None:
        """Where a group's folder is on the host; None if it has none."""
        path = getattr(record, self.name)
        return None if path is None else Path(path)

    def sha256(self, record: GroupRecord) -> str | None:
        return getattr(record, f"{self.name}_sha256")

    def require_unchanged(self, record: GroupRecord) -> None:
        """All runs of a group must see the same files."""
        folder, sha256 = self.path(record), self.sha256(record)
        if folder is None:
            return
        if not folder.is_dir():
            raise self._error(f"{folder} is not a folder")
        if sha256 and self.identity(folder) != sha256:
            raise self._error(f"{folder} has changed since these runs were planned: plan them again")

    def _refuse_location(self, folder: Path, forbidden: Iterable[Path]) -> None:
        resolved = paths.resolved(folder)
        for forbidden_folder in map(paths.resolved, forbidden):
            if resolved.is_relative_to(forbidden_folder):
                raise self._error(
                    f"{folder} is inside {forbidden_folder}, which agents must not see: copy it elsewhere"
                )
            if forbidden_folder.is_relative_to(resolved) and forbidden_folder.exists():
                raise self._error(
                    f"{folder} contains {forbidden_folder}, which agents must not see: name another folder"
                )
        if os.geteuid() == 0 and folder.stat().st_mode & 0o005 != 0o005:
            raise self._error(
                f"{folder} is closed to other users, but agents run as another user: `chmod -R o+rX {folder}`"
            )

    def _error(self, message: str) -> PrerequisiteError:
        return PrerequisiteError(f"--{self.name}: {message}")


@dataclass(frozen=True)
class SharedFolder(HostFolder):
    """A folder that agents see below /home, under the name of its option."""

    content: str  # for the instructions

    @property
    def target(self) -> str:
        return f"{HOME}/{self.name}"

    def fields(self, folder: Path | None) -> dict[str, Any]:
        """What a group's record says about the folder."""
        sha256 = None if folder is None else self.identity(folder)
        return {self.name: None if folder is None else str(folder.absolute()), f"{self.name}_sha256": sha256}

    def bind(self, record: GroupRecord) -> Bind | None:
        path = self.path(record)
        return None if path is None else Bind(path, self.target)

    def identity(self, folder: Path) -> str:
        """Equal for folders with equal files: names and sizes of all, and the bytes of the first gigabyte."""
        digest, remaining = hashlib.sha256(), MOST_READ
        for item in sorted(self._entries(folder)):
            content = "" if item.link is None else f"link {item.link}"
            if item.link is None and item.size <= remaining:
                remaining -= item.size
                content = self._content(folder / item.name)
            digest.update(f"{len(item.name)} {item.name} {item.size} {content}\n".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()

    def refuse(self, folder: Path, forbidden: Iterable[Path], competitions: Iterable[Competition]) -> None:
        """Say why agents must not read this folder: it would show them answers or runs, or lead somewhere else."""
        if not folder.is_dir():
            raise self._error(f"{folder} is not a folder")
        self._refuse_location(folder, (*hidden_paths(), *forbidden))
        answers = [
            path
            for competition in competitions
            for path in {competition.answers, competition.gold_submission}
            if path.is_file()
        ]
        sizes = {path: path.stat().st_size for path in answers}
        for item in self._entries(folder):
            file = folder / item.name
            if is_private(paths.resolved(folder) / item.name):
                raise self._error(f"{file} is private data of a competition: remove it")
            same = (path for path, size in sizes.items() if size == item.size and item.link is None)
            if any(filecmp.cmp(path, file, shallow=False) for path in same):
                raise self._error(f"{file} holds the answers of a competition: remove it")

    # Not `core.untrusted.walk`: a corpus may have millions of files, and one that is left out could hold answers.
    def _entries(self, root: Path, inside: str = "") -> Iterator[FolderEntry]:
        """Every file and link. Links that lead out, and anything but files and folders, are refused."""
        try:
            entries = list(os.scandir(root / inside))
        except OSError as error:
            raise self._error(f"cannot read {root / inside}: {reason_of(error)}") from None
        for entry in entries:
            name, status = f"{inside}{entry.name}", entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                yield from self._entries(root, f"{name}/")
            elif stat.S_ISREG(status.st_mode):
                yield FolderEntry(name, status.st_size, None)
            elif stat.S_ISLNK(status.st_mode):
                target = Path(entry.path).readlink()
                if target.is_absolute() or not paths.resolved(entry.path).is_relative_to(paths.resolved(root)):
                    raise self._error(f"{entry.path} is a link that leads out of the folder: copy the file")
                yield FolderEntry(name, 0, str(target))
            else:
                raise self._error(f"{entry.path} is {kind_of(status.st_mode)}: remove it")

    def _content(self, path: Path) -> str:
        try:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise self._error(f"cannot read {path}: {reason_of(error)}") from None


KNOWLEDGE = SharedFolder("knowledge", "material that you may use")
WEIGHTS = SharedFolder("weights", "pretrained models that you may use")
SHARED_FOLDERS = (KNOWLEDGE, WEIGHTS)


def weights_variables(folder: Path, shown_at: str) -> dict[str, str]:
    """Variables with which libraries load models from a folder of weights, if it has the layout of their caches.

    Hugging Face's cache may be the folder itself or its `hub`. Only the cache is named, not HF_HOME: libraries also
    write there, and the folder is read-only.
    """
    variables = {}
    for cache, location in ((folder / "hub", f"{shown_at}/hub"), (folder, shown_at)):
        if any(cache.glob("models--*/snapshots")):
            variables = {"HF_HUB_CACHE": location, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
            break
    if (folder / "hub" / "checkpoints").is_dir():
        variables["TORCH_HOME"] = shown_at
    return variables


def is_private(file: Path) -> bool:
    """Whether it is in prepared/private of any data directory."""
    parts = file.parts
    return any(inner == paths.PRIVATE and outer.startswith(paths.PREPARED) for outer, inner in pairwise(parts))
