"""Before anything is downloaded: what is there, what is missing, and whether it will fit."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mlebench.data.kaggle import preflight, present
from mlebench.data.kaggle_api import connect
from mlebench.data.sources import PathSource, Source
from mlebench.data.state import preparation_fault
from mlebench.errors import PrerequisiteError
from mlebench.registry import Competition


class Check(NamedTuple):
    """One competition's chances. Sizes are in bytes and on top of what is there; before a download, at least that."""

    id: str
    data: str  # prepared, raw, archive, or none
    rules: str
    download: int | None
    disk_at_peak: int | None
    disk_at_end: int | None
    advice: str


def check_all(competitions: Sequence[Competition], source: Source) -> Iterator[Check]:
    """A row for each; Kaggle is asked only about what is not on disk, and one failed login answers for all."""
    api = None
    why = ""
    if (
        not source.twin
        and not isinstance(source, PathSource)
        and any(_missing(competition) for competition in competitions)
    ):
        try:
            api = connect()
        except PrerequisiteError as error:
            why = str(error)
    for competition in competitions:
        yield _check(competition, source, api, why)


def _missing(competition: Competition) -> bool:
    return preparation_fault(competition) is not None and present(competition) is None


def _check(competition: Competition, source: Source, api: object, why: str) -> Check:
    if preparation_fault(competition) is None:
        return Check(competition.id, "prepared", "-", None, None, None, "")
    if source.twin:
        return Check(competition.id, "twin", "-", None, None, None, "")
    if isinstance(source, PathSource) or not _missing(competition):
        return _check_local(competition, source)
    if api is None:
        return Check(competition.id, "none", "unknown", None, None, None, why)
    answer = preflight(competition, api=api)
    advice = f"accept the rules at {answer.page}" if answer.rules == "not accepted" else answer.reason or ""
    at_least = None if answer.size is None else 2 * answer.size  # the archive, and its files
    return Check(competition.id, "none", answer.rules, answer.size, at_least, at_least, advice)


def _check_local(competition: Competition, source: Source) -> Check:
    try:
        raw = source.fetch(competition)
        size = _unpacked_size(raw)
    except PrerequisiteError as error:
        return Check(competition.id, "none", "-", None, None, None, str(error))
    if raw.is_dir():
        return Check(competition.id, "raw", "-", None, 0, 0, "")
    return Check(competition.id, "archive", "-", None, size, size, "")


def _unpacked_size(raw: Path) -> int:
    """What the files of an archive take on disk, which is what preparing it takes on top of the archive."""
    from mlebench.kit.archives import ZipTree

    if raw.is_dir():
        return 0
    tree = ZipTree(raw)
    return sum(tree.size(name) for name in tree.glob("**"))


def free_space(folder: Path) -> int:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(existing).free
