"""Writes files completely or not at all, makes folders that must be new, and recognises Git LFS pointers.

A file is written under a temporary name beside its target and then renamed. A process that is killed meanwhile leaves
that file behind. Only code that knows that no other process is writing the target may remove it.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mlebench.core.errors import PrerequisiteError, StorageError
from mlebench.core.os_errors import DiskSpace, free_space, free_space_floor

STALE = 3600.0  # seconds after which a temporary file that nobody writes to belongs to a process that was killed
_TEMPORARY = re.compile(r"(.+)\.mlebench-part-\d+", re.DOTALL)  # not `.part-00`, as `split` names its pieces

_LFS_SPEC = b"version https:" + b"//git-lfs.github.com/spec/"
_LARGEST_LFS_POINTER = 1024  # bytes
LFS_POINTER = "is a Git LFS pointer: run `git lfs pull` in its repository to get the file itself"


def is_lfs_pointer(content: bytes) -> bool:
    """Whether the content of a file only says where Git LFS keeps the real one."""
    return content.startswith(_LFS_SPEC) and len(content) <= _LARGEST_LFS_POINTER


def temporary_name(path: Path) -> Path:
    """The name under which this process writes a file before it is complete."""
    return path.with_name(f"{path.name}.mlebench-part-{os.getpid()}")


def is_temporary(name: str) -> bool:
    return _TEMPORARY.fullmatch(name) is not None


def remove_temporaries(*targets: Path) -> None:
    """Remove what killed processes left of writing these files; the caller's lease excludes other writers."""
    for file, _ in _temporaries(targets):
        file.unlink(missing_ok=True)


def remove_stale_temporaries(*targets: Path) -> None:
    """Remove remains that are far older than these files, which were just written: another process may write them too.

    Both times are the disk's own: the clocks of hosts that share it may differ.
    """
    for file, target in _temporaries(targets):
        with suppress(OSError):  # another process was quicker, or the file is another user's
            if file.stat().st_mtime < target.stat().st_mtime - STALE:
                file.unlink()


def _temporaries(targets: Collection[Path]) -> Iterator[tuple[Path, Path]]:
    """The temporary files of these targets, each with its target."""
    wanted = set(targets)
    for folder in {target.parent for target in targets}:
        names = os.listdir(folder) if folder.is_dir() else []  # noqa: PTH208 names are all we need
        for match in filter(None, map(_TEMPORARY.fullmatch, names)):
            if (target := folder / match[1]) in wanted and (folder / match[0]).is_file():
                yield folder / match[0], target


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Where to write a file that then takes its place, or is removed if anything fails.

    Once it is in its place, nothing is left that could fail.
    """
    part = temporary_name(path)
    try:
        yield part
        part.replace(path)
    except BaseException:
        with suppress(OSError):  # what failed first is what the caller has to know
            part.unlink(missing_ok=True)
        raise


def write_whole(path: Path, text: str | Iterable[str]) -> None:
    """Write a file, from a text or its pieces, completely or not at all."""
    with replacing(path) as part, part.open("w", encoding="utf-8") as stream:
        stream.writelines([text] if isinstance(text, str) else text)


def rewrite(path: Path, text: str) -> None:
    """Replace a file or, where a full disk refuses that, write over what is there in one piece; blanks do no harm."""
    try:
        write_whole(path, text)
    except OSError:
        with path.open("r+b", buffering=0) as file:
            file.write(text.encode().ljust(path.stat().st_size))


def require_free_space(folder: Path, limit: int | None, files: int | None = None) -> None:
    """StorageError if a disk is too full to start an agent that may write `limit` bytes and so many files.

    It need not have room for all of that, but enough that an agent is not blamed for a disk that others had filled.
    """
    free, floor = free_space(folder), free_space_floor(folder)
    needed = DiskSpace(floor.bytes + min((limit or 0) // 2, 1 << 30), floor.files + min((files or 0) // 2, 20_000))
    if free.bytes < needed.bytes:
        lack = f"{free.bytes >> 20} MiB are free, {needed.bytes >> 20} are needed to start an agent: free some space"
    elif free.files < needed.files:
        lack = f"{free.files} inodes are free, {needed.files} are needed to start an agent: remove some files"
    else:
        return
    raise StorageError(f"the disk of {folder} is nearly full: {lack}, then resume")


def make_new_folder(folder: Path) -> None:
    """Make a folder that a person named; it must not exist yet."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise PrerequisiteError(f"{folder} already exists: choose another name, or remove it") from None
    except OSError as error:
        raise PrerequisiteError(f"cannot create {folder}: {(error.strerror or '').lower()}") from None
