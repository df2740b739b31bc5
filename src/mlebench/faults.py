"""Faults of disks and folders: the person at the keyboard gets one line, not a traceback.

The keeper imports this module: standard library only.
"""

import errno
import os

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
}
OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
FREE_SPACE_FLOOR = 512 << 20  # bytes: with less, a disk counts as full; a small one, with less than a hundredth
OF_DISKS = (*OF_WRITING, errno.EIO, errno.ESTALE)


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
    return f"cannot write: {reason_of(error)}" if error.errno in OF_WRITING else None


def free_space(folder: str | os.PathLike[str]) -> int:
    """The bytes that an ordinary user can still write to the disk of a folder."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def free_space_floor(folder: str | os.PathLike[str]) -> int:
    """The bytes of free space below which the disk of a folder counts as full."""
    disk = os.statvfs(folder)
    return min(FREE_SPACE_FLOOR, disk.f_blocks * disk.f_frsize // 100)
