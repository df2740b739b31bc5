"""Faults of disks and folders are for the person at the keyboard, not a traceback."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlebench.errors import PrerequisiteError

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.EEXIST: "something else is there",
    errno.ENAMETOOLONG: "the name is too long for this disk",
    errno.EIO: "the disk fails (input/output error)",
}
_OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_OURS = (errno.EBADF, errno.EINVAL, errno.EFAULT)  # nobody but a programmer can do something about these


@contextmanager
def explained(folder: Path, *raw: Path) -> Iterator[None]:
    """While something is made in a folder; below `raw`, and outside of it, we only read."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.errno in _OURS:
            raise
        where = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else folder
        if not where.is_absolute():  # a name below a folder that the error does not tell
            where = folder
        inside = where.is_relative_to(folder) or folder.is_relative_to(where)
        written = inside and not any(map(where.is_relative_to, raw))
        verb = "write to" if written or error.errno in _OF_WRITING else "read"
        reason = _REASONS.get(error.errno, os.strerror(error.errno))
        raise PrerequisiteError(f"cannot {verb} {where}: {reason}") from error
