"""What is known about an archive: who fetched it and when, and its md5. The record stays beside the archive.

So however many attempts a prepare takes, each knows where the data came from, and none rereads a large archive for its
md5.
"""

from pathlib import Path
from typing import Any

from mlebench.core.errors import PrerequisiteError
from mlebench.core.paths import CompetitionPaths
from mlebench.engine.progress import SILENT, Progress
from mlebench.records import Record, now, read, write


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


def record_download(where: CompetitionPaths, url: str) -> None:
    """Record that we downloaded the archive, which does not have its final name yet."""
    facts = ArchiveRecord.of(where.archive_part, "kaggle", url=url, fetched_at=now())
    write(where.archive_record, facts.changed(archive=where.archive.name))


def archive_md5(archive: Path, where: CompetitionPaths, progress: Progress = SILENT) -> str:
    """The md5 of an archive; it is recorded, so the archive is read only once."""
    from mlebench.engine.reading import md5_of

    beside = archive.absolute() == where.archive.absolute()
    path = where.archive_record if beside else where.archive_elsewhere_record
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
