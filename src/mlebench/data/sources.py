"""Where raw data comes from. A source provides a folder or an archive; the pipeline does the rest.

`kaggle.KaggleSource` is one more, with the same three members.

What is known about an archive (who fetched it and when, and its md5) is recorded beside it. So however many attempts a
prepare takes, each knows where the data came from, and none rereads a large archive for its md5.
"""

import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from mlebench.core.authors import author_errors, require_parameters
from mlebench.core.errors import CompetitionError, PrerequisiteError
from mlebench.core.files import remove_temporaries, write_whole
from mlebench.core.os_errors import disk_errors
from mlebench.core.paths import TWIN, CompetitionPaths
from mlebench.data.state import claim_data_dir
from mlebench.engine.progress import SILENT, Progress
from mlebench.records import Record, now, read, write
from mlebench.records.data import DataSource
from mlebench.registry import Competition, code_name
from mlebench.scoring import import_fn


class RawSource(Protocol):
    @property
    def twin(self) -> bool: ...

    def fetch(self, competition: Competition, progress: Progress = SILENT) -> Path:
        """Make the raw data available, as a folder or a zip archive."""
        ...

    def describe(self, raw: Path) -> DataSource:
        """What the manifest says about the raw data that was fetched; `kind` is one word."""
        ...


class LocalSource:
    """Raw data that is already in the data directory, as raw/ or <id>.zip."""

    twin = False

    def fetch(self, competition: Competition, progress: Progress = SILENT) -> Path:  # noqa: ARG002
        folders = competition.paths
        raw = choose_raw(folders.raw, folders.archive)
        if raw is None:
            raise PrerequisiteError(
                f"there is no raw data of {competition.id}: put Kaggle's archive at {folders.archive}, "
                f"or try synthetic data with `{competition.prepare_command} --twin`"
            )
        return raw

    def describe(self, raw: Path) -> DataSource:
        return describe_raw(raw)


@dataclass(frozen=True)
class PathSource:
    """Raw data elsewhere: an archive, a raw folder, or a folder with <id>.zip or <id>/ for many."""

    path: Path
    twin = False

    def fetch(self, competition: Competition, progress: Progress = SILENT) -> Path:  # noqa: ARG002
        if self.path.is_file():
            return self.path.absolute()
        own = CompetitionPaths(self.path, competition.id)
        beside = CompetitionPaths(self.path.parent, self.path.name)
        raw = (
            choose_raw(own.raw, own.archive)
            or choose_raw(None if _is_root(own) else own.root, self.path / own.archive.name)
            or (choose_raw(beside.raw, None) if _is_root(beside) else None)
        )
        if raw is None and not _is_root(beside) and self.path.is_dir() and not _holds_many(self.path):
            raw = choose_raw(self.path, None)
        if raw is None:
            raise PrerequisiteError(
                f"there is no raw data of {competition.id} in {self.path}: it should hold {competition.id}.zip, "
                f"a folder {competition.id}, or the raw files themselves"
            )
        return raw.absolute()

    def describe(self, raw: Path) -> DataSource:
        return describe_raw(raw)


@dataclass(frozen=True)
class TwinSource:
    """Synthetic raw data, made on the spot; the same for the same seed and size."""

    seed: int = 0
    size: float = 1.0
    twin = True

    def fetch(self, competition: Competition, progress: Progress = SILENT) -> Path:  # noqa: ARG002
        with disk_errors(competition.paths.root):
            return self._fetch(competition)

    def _fetch(self, competition: Competition) -> Path:
        folders = competition.paths
        claim_data_dir(folders.data_dir, twin=True)
        remove_temporaries(folders.twin)
        if folders.raw.is_dir() and self.matches(_read(folders.twin)):
            return folders.raw
        if folders.raw.is_dir() and any(folders.raw.iterdir()) and not folders.twin.exists():
            raise PrerequisiteError(
                f"{folders.raw} does not hold a twin: move it away, and a twin will be made in its place"
            )
        remove(folders.raw_staging)
        if folders.raw.exists():  # renamed first: something half removed must not look complete
            folders.raw.rename(folders.raw_staging)
        folders.twin.unlink(missing_ok=True)
        remove(folders.raw_staging)
        scaled = make_twin(competition, folders.raw_staging, seed=self.seed, size=self.size)
        write_whole(folders.twin, json.dumps(asdict(self) | {"scaled": scaled}) + "\n")
        folders.raw_staging.rename(folders.raw)
        return folders.raw

    def forget(self, folders: CompetitionPaths) -> None:
        """Have a twin made again the next time it is fetched."""
        if folders.twin.exists():
            write_whole(folders.twin, "{}\n")

    def matches(self, record: dict[str, Any] | None) -> bool:
        """Whether a record (of a twin, or of a manifest's source) describes this very twin."""
        return record is not None and {"seed": self.seed, "size": self.size}.items() <= record.items()

    def describe(self, raw: Path) -> DataSource:  # noqa: ARG002
        return DataSource(kind="twin", **asdict(self))


def describe_raw(raw: Path) -> DataSource:
    """Where raw data came from, if recorded; a folder counts as the archive beside it if it holds the same files."""
    folders = CompetitionPaths(raw.parent.parent, raw.parent.name)
    archive = folders.archive if raw == folders.raw else raw
    known = recorded_archive(archive, folders.archive_record)
    if known is None or known.kind == "local" or (raw.is_dir() and choose_raw(raw, archive) != raw):
        return DataSource(kind="local")
    return DataSource(kind=known.kind, url=known.url, fetched_at=known.fetched_at, size=known.size, md5=known.md5)


def missing_beside_archive(competition: Competition, *folders: Path) -> str | None:
    """What to do about required files that Kaggle does not have, if one is missing from all of the places."""
    for name, origin in competition.beside_archive.items():
        if not any((folder / name).is_file() for folder in folders):
            return f"{name} is not in Kaggle's archive: get it from {origin}, and put it unchanged into {folders[0]}"
    return None


def make_twin(competition: Competition, folder: Path, *, seed: int, size: float) -> dict[int, int]:
    """Write a twin's raw files; returns which of its sizes stand for absolute sizes of the real data."""
    from mlebench.kit.twins import TwinFolder

    name = f"{code_name(competition.id)}.twin:twin"
    if not (competition.folder / TWIN).is_file():
        raise PrerequisiteError(f"{competition.id} has no twin; add {TWIN} to {competition.folder}")
    folder.mkdir(parents=True)
    raw = TwinFolder(folder, seed=seed, size=size)
    with author_errors():
        make = import_fn(name)
        require_parameters(make, "raw")
        make(raw)
    if not any(folder.iterdir()):
        raise CompetitionError("`twin` wrote no file: call `raw.write_csv` or `raw.write`", TWIN)
    return raw.scaled


def _is_root(folders: CompetitionPaths) -> bool:
    """Whether a folder is a competition's in a data directory, rather than its raw files."""
    return folders.prepared.exists() or folders.lock.exists() or folders.archive.exists()


def choose_raw(folder: Path | None, archive: Path | None) -> Path | None:
    """The raw folder or the archive: the folder, which can be linked from, if it has everything in the archive.

    The reference unpacks into raw folders and deletes from them, so where there is an archive it has the last word.
    """
    if folder and not (folder.is_dir() and any(folder.iterdir())):
        folder = None
    if archive is None or not archive.is_file():
        return folder
    return folder if folder and _is_whole(folder, archive) else archive


def _is_whole(folder: Path, archive: Path) -> bool:
    from mlebench.engine.archives.zip_tree import ZipTree

    tree = ZipTree(archive)
    names = tree.glob("**")
    return all((folder / name).is_file() and (folder / name).stat().st_size == tree.size(name) for name in names)


def unpack(archive: Path, folders: CompetitionPaths, beside: Iterable[str], progress: Progress) -> Path:
    """The archive and the files beside it as a folder; resumes an earlier unpacking of the same archive."""
    from mlebench.engine.archives.zip_tree import ZipTree

    tree, folder, record = ZipTree(archive), folders.raw_staging, folders.raw_staging_record
    identity = json.dumps(file_identity(archive))
    if not (folder.is_dir() and record.is_file() and record.read_text(encoding="utf-8") == identity):
        remove(folder)
        write_whole(record, identity)
        folder.mkdir()
    sizes = {name: tree.size(name) for name in tree.glob("**")}
    stage = progress.stage("unpacking", sum(sizes.values()))
    for name, size in sizes.items():
        target, part = folder / name, stage.part(size, size)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not (target.exists() and tree.is_extracted(name, str(target))):
            target.unlink(missing_ok=True)
            tree.extract(name, str(target), part.advance)
        part.finish()
    record.unlink()  # from now on it may be changed, as folders written for the reference do
    for name in beside:
        shutil.copy2(archive.parent / name, folder / name)
    return folder


def file_identity(path: Path) -> list[Any]:
    """What distinguishes a file or folder from another, or from its earlier state, without reading it."""
    status = path.stat()
    return [str(path), status.st_size, status.st_mtime_ns, status.st_ino]


def remove(path: Path) -> None:
    """Remove a folder and everything below it, or whatever else is there; of a link, only the link."""
    try:
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.exists():
            shutil.rmtree(path)
    except OSError as error:  # it may name a file below the folder
        raise OSError(error.errno, error.strerror, str(path)) from error


def _holds_many(folder: Path) -> bool:
    """Whether a folder holds many competitions, rather than the raw files of one."""
    from mlebench.registry import registry

    names = {entry.name.removesuffix(".zip") for entry in folder.iterdir()}
    return bool(names & set(registry.list_competition_ids()))


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


class ArchiveRecord(Record, frozen=True, kw_only=True):
    kind: str  # `kaggle`: we downloaded it; `local`: someone put it there
    archive: str
    size: int
    mtime_ns: int
    inode: int
    url: str | None = None
    fetched_at: str | None = None
    md5: str | None = None

    @classmethod
    def of(cls, path: Path, kind: str, **more: Any) -> "ArchiveRecord":
        status = path.stat()
        facts = {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "inode": status.st_ino}
        return cls(kind=kind, archive=path.name, **facts, **more)

    def is_of(self, path: Path) -> bool:
        """Whether the record is about this archive, or a copy that kept its time."""
        status = path.stat()
        return (self.size, self.mtime_ns) == (status.st_size, status.st_mtime_ns)

    def is_of_same_file(self, path: Path) -> bool:
        return self.is_of(path) and self.inode == path.stat().st_ino


def record_download(folders: CompetitionPaths, url: str) -> None:
    """Record that we downloaded the archive, which does not have its final name yet."""
    facts = ArchiveRecord.of(folders.archive_part, "kaggle", url=url, fetched_at=now())
    write(folders.archive_record, facts.changed(archive=folders.archive.name))


def archive_md5(archive: Path, folders: CompetitionPaths, progress: Progress = SILENT) -> str:
    """The md5 of an archive; it is recorded, so the archive is read only once."""
    from mlebench.engine.raw_streams import md5_of

    beside = archive.absolute() == folders.archive.absolute()
    path = folders.archive_record if beside else folders.archive_elsewhere_record
    known = recorded_archive(archive, path)
    if known and known.md5 and known.is_of_same_file(archive) and (beside or known.archive == str(archive)):
        return known.md5
    md5 = md5_of(archive, progress.stage("checking the archive", archive.stat().st_size))
    fresh = ArchiveRecord.of(archive, "local") if known is None or not beside else known
    name = archive.name if beside else str(archive)
    write(path, fresh.changed(md5=md5, inode=archive.stat().st_ino, archive=name))
    return md5


def recorded_archive(archive: Path, record: Path) -> ArchiveRecord | None:
    """What is recorded about an archive; None if there is nothing, or it is about another archive."""
    try:
        known = read(record, ArchiveRecord)
        return known if known.is_of(archive) else None
    except (PrerequisiteError, FileNotFoundError):
        return None
