"""`--knowledge`: a folder that agents may read, at /home/knowledge. What it may hold, and what identifies it."""

import filecmp
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import reason_of
from mlebench.core.untrusted import kind_of
from mlebench.records.group import GroupRecord
from mlebench.registry import Competition
from mlebench.sandbox.base import hidden_paths

MOST_READ = 1 << 30  # bytes; beyond, only names and sizes count, since a corpus may be as large as a disk


class KnowledgeEntry(NamedTuple):
    name: str  # below the folder
    size: int
    link: str | None  # where a symbolic link points


def identity(folder: Path) -> str:
    """Equal for folders with equal files: names and sizes of all, and the bytes of the first gigabyte."""
    digest, remaining = hashlib.sha256(), MOST_READ
    for item in sorted(_items(folder)):
        content = "" if item.link is None else f"link {item.link}"
        if item.link is None and item.size <= remaining:
            remaining -= item.size
            content = _content(folder / item.name)
        digest.update(f"{len(item.name)} {item.name} {item.size} {content}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def require_unchanged(record: GroupRecord) -> None:
    """All runs of a group must read the same files."""
    if record.knowledge is None:
        return
    folder = Path(record.knowledge)
    if not folder.is_dir():
        raise PrerequisiteError(f"--knowledge: {folder} is not a folder")
    if record.knowledge_sha256 and identity(folder) != record.knowledge_sha256:
        raise PrerequisiteError(f"--knowledge: {folder} has changed since these runs were planned: plan them again")


def refuse(folder: Path, forbidden: Iterable[Path], competitions: Iterable[Competition]) -> None:
    """Say why agents must not read this folder: it would show them answers or runs, or lead somewhere else."""
    if not folder.is_dir():
        raise PrerequisiteError(f"--knowledge: {folder} is not a folder")
    _refuse_place(folder, forbidden)
    if os.geteuid() == 0 and folder.stat().st_mode & 0o005 != 0o005:
        raise PrerequisiteError(
            f"--knowledge: {folder} is closed to other users, but agents run as another user: `chmod -R o+rX {folder}`"
        )
    answers = [
        path
        for competition in competitions
        for path in {competition.answers, competition.gold_submission}
        if path.is_file()
    ]
    sizes = {path: path.stat().st_size for path in answers}
    for item in _items(folder):
        file = folder / item.name
        if _is_private(paths.resolved(folder) / item.name):
            raise PrerequisiteError(f"--knowledge: {file} is private data of a competition: remove it")
        same = (path for path, size in sizes.items() if size == item.size and item.link is None)
        if any(filecmp.cmp(path, file, shallow=False) for path in same):
            raise PrerequisiteError(f"--knowledge: {file} holds the answers of a competition: remove it")


def _refuse_place(folder: Path, forbidden: Iterable[Path]) -> None:
    resolved = paths.resolved(folder)
    for forbidden_folder in map(paths.resolved, (*hidden_paths(), *forbidden)):
        if resolved.is_relative_to(forbidden_folder):
            raise PrerequisiteError(
                f"--knowledge: {folder} is inside {forbidden_folder}, which agents must not see: copy it elsewhere"
            )
        if forbidden_folder.is_relative_to(resolved) and forbidden_folder.exists():
            raise PrerequisiteError(
                f"--knowledge: {folder} contains {forbidden_folder}, which agents must not see: name another folder"
            )


def _is_private(file: Path) -> bool:
    """Whether it is in prepared/private of any data directory."""
    parts = file.parts
    return any(inner == paths.PRIVATE and outer.startswith(paths.PREPARED) for outer, inner in pairwise(parts))


# Not `core.untrusted.walk`: a corpus may have millions of files, and one that is left out could hold answers.
def _items(root: Path, inside: str = "") -> Iterator[KnowledgeEntry]:
    """Every file and link. Links that lead out, and anything but files and folders, are refused."""
    try:
        entries = list(os.scandir(root / inside))
    except OSError as error:
        raise PrerequisiteError(f"--knowledge: cannot read {root / inside}: {reason_of(error)}") from None
    for entry in entries:
        name, status = f"{inside}{entry.name}", entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            yield from _items(root, f"{name}/")
        elif stat.S_ISREG(status.st_mode):
            yield KnowledgeEntry(name, status.st_size, None)
        elif stat.S_ISLNK(status.st_mode):
            target = Path(entry.path).readlink()
            if target.is_absolute() or not paths.resolved(entry.path).is_relative_to(paths.resolved(root)):
                raise PrerequisiteError(
                    f"--knowledge: {entry.path} is a link that leads out of the folder: copy the file"
                )
            yield KnowledgeEntry(name, 0, str(target))
        else:
            raise PrerequisiteError(f"--knowledge: {entry.path} is {kind_of(status.st_mode)}: remove it")


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise PrerequisiteError(f"--knowledge: cannot read {path}: {reason_of(error)}") from None
