"""Faults of disks and folders: the person at the keyboard gets one line, not a traceback."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import OF_WRITING, reason_of

_OURS = (errno.EBADF, errno.EINVAL, errno.EFAULT)  # only a programmer can fix these


@contextmanager
def disk_errors(folder: Path, *raw: Path) -> Iterator[None]:
    """Wraps work that writes to a folder; below `raw` and anywhere outside the folder we only read."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.errno in _OURS:
            raise
        where = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else folder
        if not where.is_absolute():  # a name below a folder that the error does not mention
            where = folder
        inside = where.is_relative_to(folder) or folder.is_relative_to(where)
        written = inside and not any(map(where.is_relative_to, raw))
        verb = "write to" if written or error.errno in OF_WRITING else "read"
        raise PrerequisiteError(f"cannot {verb} {where}: {reason_of(error)}") from error
