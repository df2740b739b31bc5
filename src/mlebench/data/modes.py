"""Gives back the write permission that earlier versions took from prepared files, and from raw files linked to them.

An agent that copies a read-only file cannot write to its copy.
"""

import errno
import logging
import os
import stat
from pathlib import Path

from mlebench.core.errors import PrerequisiteError
from mlebench.core.leases import PATIENCE, acquire
from mlebench.core.paths import MANIFEST_FILES, CompetitionPaths
from mlebench.data.manifest import UnreadableListError, read_head, recorded_files, rewrite_manifest
from mlebench.records import write

logger = logging.getLogger(__name__)


def restore_modes(folders: CompetitionPaths) -> None:
    """Make data that an earlier version prepared writable, once; the manifest then says that it was done."""
    try:
        head = read_head(folders.manifest)
        if head is None or head.writable:
            return
        lease = acquire(folders.lock, wait=False, patience=PATIENCE)
        if lease is None:  # another process works on this data
            return
        try:
            with lease.renewed():
                let_owners_write(folders.prepared)
                _note(folders)
        finally:
            lease.release()
    # Another user's data, a disk that is read-only, a manifest that cannot be read: whoever uses the data says so.
    except (OSError, PrerequisiteError, UnreadableListError) as error:
        logger.debug("the modes of %s stay as they are: %s", folders.prepared, error)


def _note(folders: CompetitionPaths) -> None:
    head = read_head(folders.manifest)
    if head is None:
        return
    head = head.changed(writable=True)
    if (folders.prepared / MANIFEST_FILES).is_file():
        write(folders.manifest, head)
    else:  # the first schema had the list of files in the same file
        rewrite_manifest(folders.prepared, head, recorded_files(folders.prepared))


def let_owners_write(prepared: Path) -> None:
    """Make every file of prepared data writable for its owner, where that is ours to decide."""
    for folder, _, names in os.walk(prepared):
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118 there may be millions
            mode = os.lstat(path).st_mode
            if not stat.S_ISREG(mode) or mode & stat.S_IWUSR:
                continue
            try:
                os.chmod(path, stat.S_IMODE(mode) | stat.S_IWUSR)
            except OSError as error:
                if error.errno != errno.EPERM:  # then it is a link to another user's file
                    raise
