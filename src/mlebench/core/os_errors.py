"""Messages for OSErrors: the person at the keyboard gets one line, not a traceback."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mlebench.core.errors import PrerequisiteError

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.EISDIR: "it is a folder",
    errno.EEXIST: "something else is already there",
    errno.ELOOP: "symbolic links form a loop",
    errno.ENAMETOOLONG: "the name is too long for this disk",
    errno.EIO: "the disk failed (input/output error)",
    errno.ESTALE: "the disk no longer knows the file (stale file handle)",
    errno.EMFILE: "too many files are open in this process: `ulimit -n` allows more",
    errno.ENFILE: "too many files are open on this machine",
    errno.ETIMEDOUT: "the disk does not answer",
    errno.ENOMEM: "there is not enough memory",
}
OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_OF_READING = (errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENFILE, errno.ETIMEDOUT, errno.ENOMEM)
OF_DISKS = (*OF_WRITING, errno.EIO, errno.ESTALE, errno.ETIMEDOUT)
_OF_CODE = (errno.EBADF, errno.EINVAL, errno.EFAULT)  # only a programmer can fix these


def reason_of(error: OSError) -> str:
    """Why the system refused, in words."""
    return _REASONS.get(error.errno or 0) or error.strerror or str(error) or "unknown fault"


def explanation(error: OSError) -> str | None:
    """What a person can fix, in one line; None if only a programmer can."""
    if error.errno not in _REASONS:
        return None
    if isinstance(error.filename, str | bytes):
        verb = "write to" if error.errno in OF_WRITING else "use"
        return f"cannot {verb} {os.fsdecode(error.filename)}: {reason_of(error)}"
    if error.errno in OF_WRITING:
        return f"cannot write: {reason_of(error)}"
    return reason_of(error) if error.errno in _OF_READING else None


@contextmanager
def disk_errors(folder: Path, *raw: Path) -> Iterator[None]:
    """Wraps work that writes to a folder; below `raw` and anywhere outside the folder we only read."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.errno in _OF_CODE:
            raise
        path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else folder
        if not path.is_absolute():  # a name below a folder that the error does not mention
            path = folder
        inside = path.is_relative_to(folder) or folder.is_relative_to(path)
        written = inside and not any(map(path.is_relative_to, raw))
        verb = "write to" if written or error.errno in OF_WRITING else "read"
        raise PrerequisiteError(f"cannot {verb} {path}: {reason_of(error)}") from error


class DiskSpace(NamedTuple):
    """Space on a disk: bytes, and how many files and folders (inodes)."""

    bytes: int
    files: int


FREE_SPACE_FLOOR = DiskSpace(512 << 20, 10_000)  # with less of either, a disk counts as full; a small one: a hundredth
UNLIMITED = 1 << 62  # files: the disk has no fixed number of them


def free_space(folder: str | os.PathLike[str]) -> DiskSpace:
    """What an ordinary user can still write to the disk of a folder."""
    disk = os.statvfs(folder)
    return DiskSpace(disk.f_bavail * disk.f_frsize, disk.f_favail if disk.f_files else UNLIMITED)


def free_space_floor(folder: str | os.PathLike[str]) -> DiskSpace:
    """The free space below which the disk of a folder counts as full."""
    disk = os.statvfs(folder)
    size = DiskSpace(disk.f_blocks * disk.f_frsize, disk.f_files)
    return DiskSpace(*(min(floor, total // 100) for floor, total in zip(FREE_SPACE_FLOOR, size, strict=True)))
