"""Files that two profiles of a competition have in common exist once: each is a hard link to the same bytes.

Nothing of ours writes to a prepared file: every stage makes a new one and renames it. So preparing a profile again, or
removing it, leaves the other's files as they are.
"""

import logging
import os
import stat
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mlebench.core.paths import PROFILES, SCRATCH, CompetitionPaths
from mlebench.data.manifest import UnreadableListError, merge_join, read_head, recorded_files
from mlebench.engine.trees import COPY_BYTES

logger = logging.getLogger(__name__)

_CHECKSUMS = ("md5", "crc32", "content")


def share_files(folders: CompetitionPaths) -> int:
    """Replace staged files that equal another profile's prepared ones with hard links to these; return how many."""
    return sum(
        _share(folders.staging, other.prepared)
        for profile in PROFILES
        if profile != folders.profile and read_head((other := replace(folders, profile=profile)).manifest)
    )


def _share(staging: Path, prepared: Path) -> int:
    shared = 0
    with TemporaryDirectory(dir=staging, prefix=SCRATCH) as scratch:
        link = Path(scratch) / "link"
        try:
            for name, mine, its in merge_join(recorded_files(staging), recorded_files(prepared)):
                if mine and its and _may_be_equal(mine, its) and _may_be_linked(staging / name, prepared / name, mine):
                    os.link(prepared / name, link)
                    link.replace(staging / name)
                    shared += 1
        except (OSError, UnreadableListError) as error:  # a disk without links, or a damaged list: copies will do
            logger.info("Not all files are shared with %s: %s", prepared, error)
    return shared


def _may_be_equal(mine: dict[str, Any], its: dict[str, Any]) -> bool:
    """Whether what is recorded about two files allows that they are equal: so most others need not be read."""
    return mine["size"] == its["size"] and all(
        mine[name] == its[name] for name in _CHECKSUMS if name in mine and name in its
    )


def _may_be_linked(mine: Path, its: Path, recorded: dict[str, Any]) -> bool:
    """Whether the other profile's file can be used: a link has its mode, owner and time, so these must be right too."""
    own_stat, its_stat = mine.lstat(), its.lstat()
    same = all(
        getattr(own_stat, fact) == getattr(its_stat, fact)
        for fact in ("st_dev", "st_mode", "st_uid", "st_gid", "st_size")
    )
    if not same or not stat.S_ISREG(own_stat.st_mode) or own_stat.st_ino == its_stat.st_ino:
        return False
    if "mtime_ns" in recorded and own_stat.st_mtime_ns != its_stat.st_mtime_ns:  # then it is the file's only record
        return False
    return _same_bytes(mine, its)


def _same_bytes(mine: Path, its: Path) -> bool:
    with mine.open("rb") as own_file, its.open("rb") as its_file:
        while piece := own_file.read(COPY_BYTES):
            if piece != its_file.read(COPY_BYTES):
                return False
        return not its_file.read(1)
