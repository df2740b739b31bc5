"""Before anything is downloaded: what is there, what is missing, and whether it will fit."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import disk_errors
from mlebench.core.paths import CompetitionPaths
from mlebench.data.kaggle import KaggleSource, preflight, raw_data_present
from mlebench.data.kaggle_api import connect
from mlebench.data.pipeline import Options
from mlebench.data.sources import PathSource, RawSource, missing_beside_archive
from mlebench.data.state import data_dir_fault, preparation_fault
from mlebench.registry import Competition

ARCHIVES = (".zip", ".7z", ".tar", ".tgz", ".gz", ".bz2", ".xz")
WRITTEN_ANEW = (".csv", ".tsv", ".json", ".jsonl", ".bson", ".parquet")


class Requirements(NamedTuple):
    """What one competition will need. Sizes are in bytes, on top of what exists; estimates err on the large side."""

    id: str
    data: str  # prepared, raw, archive, or none
    rules: str
    download: int | None
    disk_at_peak: int | None
    disk_at_end: int | None
    advice: str


def shared_faults(competitions: Sequence[Competition], source: RawSource, options: Options) -> dict[str, str]:
    """Why competitions cannot be prepared, by id, where the reason is not their own.

    It may be the data directory, or Kaggle, for those that need something from there. Each is tried once for all.
    """
    lacking = [competition for competition in competitions if options.force or not _counts_as_prepared(competition)]
    if not lacking:
        return {}
    data_dir = lacking[0].paths.data_dir
    if fault := data_dir_fault(data_dir, twin=source.twin) or _write_fault(data_dir):
        return dict.fromkeys((competition.id for competition in lacking), fault)
    needy = [competition for competition in lacking if _needs_kaggle(competition, source, options)]
    try:
        if needy:
            connect()
    except PrerequisiteError as error:
        archive = CompetitionPaths(data_dir, "ID").archive
        advice = "" if source.twin else f"; or put archives from Kaggle at {archive}, or try synthetic data with --twin"
        return dict.fromkeys((competition.id for competition in needy), f"{error}{advice}")
    return {}


def _write_fault(folder: Path) -> str | None:
    try:
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return None
    except PrerequisiteError as error:
        return str(error)


def _needs_kaggle(competition: Competition, source: RawSource, options: Options) -> bool:
    return options.original_description or (isinstance(source, KaggleSource) and not _has_raw_data(competition))


def check_all(competitions: Sequence[Competition], source: RawSource) -> Iterator[Requirements]:
    """A row for each; Kaggle is asked only about what is not on disk, and one failed login counts for all."""
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
        root = competition.paths.root
        try:
            with disk_errors(root, root):
                row = _check(competition, source, api, why)
        except PrerequisiteError as error:
            row = Requirements(competition.id, "none", "-", None, None, None, str(error))
        yield row


def _missing(competition: Competition) -> bool:
    return not _counts_as_prepared(competition) and not _has_raw_data(competition)


def _counts_as_prepared(competition: Competition) -> bool:
    try:
        return preparation_fault(competition) is None
    except OSError:  # reported when it is checked or prepared
        return True


def _has_raw_data(competition: Competition) -> bool:
    try:
        return raw_data_present(competition) is not None
    except OSError:  # as above
        return True


def _check(competition: Competition, source: RawSource, api: object, why: str) -> Requirements:
    if preparation_fault(competition) is None:
        return Requirements(competition.id, "prepared", "-", None, None, None, "")
    if fault := data_dir_fault(competition.paths.data_dir, twin=source.twin):
        return Requirements(competition.id, "none", "-", None, None, None, fault)
    if source.twin:
        return Requirements(competition.id, "twin", "-", None, None, None, "")
    if isinstance(source, PathSource) or not _missing(competition):
        return _check_local(competition, source)
    if api is None:
        return Requirements(competition.id, "none", "unknown", None, None, None, why)
    answer = preflight(competition, api=api)
    folders = competition.paths
    lacking = missing_beside_archive(competition, folders.root, folders.raw)
    refused = f"accept the rules at {answer.page}" if answer.rules == "not accepted" else answer.reason
    advice = "; ".join(filter(None, [refused, lacking]))
    unpacked = answer.unpacked or answer.size
    disk = None if answer.size is None or unpacked is None else answer.size + unpacked
    return Requirements(competition.id, "none", answer.rules, answer.size, disk, disk, advice)


def _check_local(competition: Competition, source: RawSource) -> Requirements:
    try:
        raw = source.fetch(competition)
        sizes = _sizes(raw)
        inside, unknown = _look_inside(raw, [name for name in sizes if name.endswith(ARCHIVES)])
    except PrerequisiteError as error:
        return Requirements(competition.id, "none", "-", None, None, None, str(error))
    # Tables are written again, after spilling once if their order changes; other files are placed. Archives inside a
    # raw folder are unpacked.
    tables = sum(size for name, size in [*sizes.items(), *inside] if name.endswith(WRITTEN_ANEW))
    linked = raw.is_dir() and raw.stat().st_dev == _existing(competition.paths.root).stat().st_dev
    unpacked = sum(size for _, size in inside)
    own_tables = sum(size for name, size in sizes.items() if name.endswith(WRITTEN_ANEW))
    at_end = unpacked + (own_tables if linked else sum(sizes.values()))
    kind, lacking = "raw" if raw.is_dir() else "archive", missing_beside_archive(competition, raw.parent, raw)
    advice = "; ".join(filter(None, [lacking, _warning(unknown)]))
    return Requirements(competition.id, kind, "-", None, at_end + tables, at_end, advice)


def _sizes(raw: Path) -> dict[str, int]:
    from mlebench.engine.archives.zip_tree import ZipTree
    from mlebench.engine.trees import FolderTree

    tree = FolderTree(raw) if raw.is_dir() else ZipTree(raw)
    return {name: tree.size(name) for name in tree.glob("**")}


def _look_inside(raw: Path, archives: list[str]) -> tuple[list[tuple[str, int]], list[str]]:
    """Names and sizes of the files in archives of a raw folder, and the archives that would have to be unpacked.

    Archives inside archives are not opened; a compressed tar counts at its own size.
    """
    from mlebench.engine.archives.tar_and_7z import lists_its_files, packed_files
    from mlebench.engine.archives.zip_tree import is_zip

    if not raw.is_dir():
        return [], archives
    files, unknown = [], []
    for name in archives:
        path = raw / name
        if is_zip(path):
            members = list(_sizes(path).items())
        elif lists_its_files(path):
            members = [(file.name, file.size) for file in packed_files(path, str(path))]
        else:
            members = []
            files.append((name, path.stat().st_size))
            unknown.append(name)
        files += members
        unknown += [f"{name}/{inner}" for inner, _ in members if inner.endswith(ARCHIVES)]
    return files, unknown


def _warning(unknown: list[str]) -> str:
    if not unknown:
        return ""
    more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
    return f"allow more: the contents of {', '.join(unknown[:3])}{more} are not counted"


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def free_space(folder: Path) -> int:
    return shutil.disk_usage(_existing(folder)).free
