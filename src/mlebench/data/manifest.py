"""What was prepared, from what and by which versions: the record beside prepared data.

It consists of two files. The head is small, and is all that is needed to know where data came from. The list has a
line for each file, sorted by name; there may be millions, so it is read and written line by line. The list is written
first, so that a head never exists without it. The first schema had both in one file; it can still be read.

The head has one hash that identifies prepared data, wherever, whenever and from whatever source it was prepared. It is
made from the files alone, so data that another program prepared has one too. Every file counts by its name and size.
Tables and records directly in public/ and private/ (the answers, and the files with published checksums) count by their
bytes; parquet by its content, since its bytes depend on the library that wrote them; zip and 7z by their members'
content, since compressed sizes depend on a library too. The description is left out: it may be corrected.
"""

import hashlib
import json
import os
import platform
import stat
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from mlebench import __version__
from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import write_whole
from mlebench.core.os_errors import disk_errors
from mlebench.core.paths import DESCRIPTION, MANIFEST, MANIFEST_FILES, PRIVATE, PUBLIC
from mlebench.engine.progress import SILENT, Progress
from mlebench.records import DamagedRecordError, now, parse, write
from mlebench.records.data import DataSource, GoldCost, Manifest
from mlebench.registry import Competition

LINES = 1_000  # printed in one go
BYTES = 1 << 17  # parsed in one go
PART = 1 << 23  # bytes of a list that are worth a process, about 100,000 files

FileEntry = tuple[str, dict[str, Any]]  # a file's name under the prepared folder; its size, and md5, crc32 or mtime_ns
Files = dict[str, dict[str, Any]]  # a few entries
SIDES = (PUBLIC, PRIVATE)
PARQUET = ".parquet"
TABLES = (".csv", ".json", ".jsonl", PARQUET, ".bson")
ARCHIVES = (".zip", ".7z")
_LEFT_OUT = f"{PUBLIC}/{DESCRIPTION}"


class UnreadableListError(ValueError):
    """There is no list of files, or it cannot be understood."""


def write_manifest(
    competition: Competition,
    folder: Path,
    source: DataSource,
    entries: Iterable[FileEntry],
    description: str = "unknown",
    code: str | None = None,
    progress: Progress = SILENT,
    gold: GoldCost | None = None,
) -> Files:
    """Write the manifest of a folder with these files, which come sorted by name; return what it says about tables."""
    from mlebench.engine.raw_streams import reporting_pieces

    tally = _FileCounter(folder)
    write_whole(folder / MANIFEST_FILES, reporting_pieces(_lines(tally.counted(entries)), progress, "checking"))
    head = Manifest(
        competition=competition.id,
        profile=competition.profile,
        competition_version=competition.version,
        source=source,
        prepared_at=now(),
        versions=library_versions(),
        files=tally.files,
        bytes=tally.bytes,
        description=description,
        code=code,
        identity=tally.identity.hexdigest(),
        gold=gold,
        writable=True,
    )
    write(folder / MANIFEST, head)
    return tally.tables


def rewrite_manifest(prepared: Path, head: Manifest, entries: Iterable[FileEntry]) -> None:
    """Write a manifest again with more facts about its files; the first schema is converted to the current one."""
    if head.identity is None:
        tally = _FileCounter(prepared)
        write_whole(prepared / MANIFEST_FILES, _lines(tally.counted(entries)))
        head = head.changed(identity=tally.identity.hexdigest())
    else:
        write_whole(prepared / MANIFEST_FILES, _lines(entries))
        head = head.changed()
    write(prepared / MANIFEST, head)


class _FileCounter:
    """Counts files as they pass by."""

    def __init__(self, folder: Path):
        self.identity = ContentIdentity(folder)
        self.files = self.bytes = 0
        self.tables: Files = {}

    def counted(self, entries: Iterable[FileEntry]) -> Iterator[FileEntry]:
        for name, facts in entries:
            self.identity.add(name, facts)
            self.files += 1
            self.bytes += facts["size"]
            if is_table(name):
                self.tables[name] = facts
            yield name, facts


def read_head(path: Path) -> Manifest | None:
    """The recorded head; None if there is none, or none that this program wrote."""
    with disk_errors(path.parent, path.parent):
        try:
            return parse(path.read_bytes(), Manifest, path)
        except (FileNotFoundError, NotADirectoryError, DamagedRecordError):
            return None


class Span(NamedTuple):
    """A range of names, and where in the list of files their lines are."""

    first: str = ""
    beyond: str = chr(sys.maxunicode)
    start: int = 0
    end: int = sys.maxsize

    def covers(self, name: str) -> bool:
        """Whether a file, or something in a folder whose name ends with a slash, is in this range."""
        return name < self.beyond and (name >= self.first or (name.endswith("/") and self.first.startswith(name)))


WHOLE = Span()


def spans(prepared: Path, most: int) -> list[Span]:
    """Split a long list of files into parts of about the same length; where that fails, there is one part."""
    try:
        with (prepared / MANIFEST_FILES).open("rb") as stream:
            length = os.fstat(stream.fileno()).st_size
            count = min(most, length // PART)
            bounds = [(WHOLE.first, WHOLE.start)]
            for part in range(1, count):
                stream.seek(length * part // count)
                stream.readline()  # the rest of a line
                start = stream.tell()
                bounds.append((json.loads(stream.readline())[0], start))
        bounds.append((WHOLE.beyond, WHOLE.end))
        parts = [Span(first, beyond, start, end) for (first, start), (beyond, end) in pairwise(bounds)]
        return parts if all(part.first < part.beyond for part in parts) else [WHOLE]
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return [WHOLE]  # reading it will tell what is wrong


def recorded_files(prepared: Path, span: Span = WHOLE) -> Iterator[FileEntry]:
    """The list of files, sorted by name; UnreadableListError, perhaps after some, if it cannot be understood."""
    path = prepared / MANIFEST_FILES
    with disk_errors(prepared, prepared):
        if path.is_file():
            yield from _checked(_listed(path, span), path, span)
            return
        manifest = _load(prepared / MANIFEST)
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict):
        raise UnreadableListError(f"{prepared} has no list of its files")
    yield from _checked(sorted(files.items()), prepared / MANIFEST, span)


def _listed(path: Path, span: Span) -> Iterator[Any]:
    try:
        with path.open("rb") as stream:
            at = stream.seek(span.start)
            while lines := stream.read(min(BYTES, span.end - at)):
                lines += b"" if lines.endswith(b"\n") else stream.readline()
                at += len(lines)
                yield from json.loads(b"[%b]" % lines.removesuffix(b"\n").replace(b"\n", b","))
    except (ValueError, RecursionError) as error:  # not UTF-8, or not JSON
        raise UnreadableListError(f"{path}: {error}") from None


def _checked(entries: Iterable[Any], path: Path, span: Span) -> Iterator[FileEntry]:
    """Yield entries; raise unless they are sorted, since only a sorted list can be compared while it is read."""
    before = ""
    for entry in entries:
        try:
            name, facts = entry
            if not before < name < span.beyond or type(facts["size"]) is not int:
                raise ValueError("it is out of order, or has no size")
        except (ValueError, TypeError, KeyError) as error:
            raise UnreadableListError(f"{path}: {entry!r} is not a file's name and facts: {error}") from None
        yield name, facts
        before = name


def _load(path: Path) -> Any:
    """The JSON in a file; None if there is no such file, or no JSON in it."""
    with disk_errors(path.parent, path.parent):
        try:
            return json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
            return None


@cache
def library_versions() -> dict[str, str]:
    from importlib.metadata import version

    libraries = {name: version(name) for name in ("pandas", "numpy", "pyarrow")}
    return {"python": platform.python_version(), "mlebench": __version__, **libraries}


def _lines(entries: Iterable[FileEntry]) -> Iterator[str]:
    """Yield the lines of a list.

    Many are printed in two calls and split where no text can be: it takes half the time.
    """
    entries = iter(entries)
    while batch := list(islice(entries, LINES)):
        keys = json.dumps([name for name, _ in batch], separators=(",\n", ": "))[1:-1].split(",\n")
        facts = json.dumps([facts for _, facts in batch])[2:-2].split("}, {")
        yield "".join(f"[{key}, {{{fact}}}]\n" for key, fact in zip(keys, facts, strict=True))


def files_in(prepared: Path, span: Span = WHOLE) -> Iterator[FileEntry]:
    """The files below public/ and private/, sorted by name, with size and time; one that cannot be read has a `fault`.

    Symbolic links to folders are not followed.
    """
    for side in sorted(SIDES):
        yield from _files_below(prepared, side, span)


def _files_below(prepared: Path, name: str, span: Span) -> Iterator[FileEntry]:
    """Yield the files below a folder, relative to open folders.

    With millions of files, resolving long paths is slow.
    """
    try:
        descriptor = os.open(f"{prepared}/{name}", os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):  # a folder that we may not read must not count as empty
        return
    try:
        with os.scandir(descriptor) as entries:
            # With a trailing slash, a folder sorts where its files belong among all names.
            names = (f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name for entry in entries)
            if span is not WHOLE:
                names = (child for child in names if span.covers(f"{name}/{child}"))
            children = sorted(names)
        for child in children:
            if child.endswith("/"):
                below = f"{name}/{child}"
                has_bound = span.first.startswith(below) or span.beyond.startswith(below)
                yield from _files_below(prepared, below[:-1], span if has_bound else WHOLE)
                continue
            try:
                status = os.stat(child, dir_fd=descriptor)
            except OSError as error:  # usually a broken symbolic link
                fault = f"cannot be read ({error.strerror})"
                yield f"{name}/{child}", {"size": 0, "mtime_ns": 0, "fault": fault}
                continue
            facts: dict[str, Any] = {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
            if not stat.S_ISREG(status.st_mode):
                if stat.S_ISDIR(status.st_mode):  # there is a link to it
                    continue
                facts["fault"] = "is not a file"
            yield f"{name}/{child}", facts
    finally:
        os.close(descriptor)


def merge_join(
    recorded: Iterator[FileEntry], actual: Iterator[FileEntry]
) -> Iterator[tuple[str, dict[str, Any] | None, dict[str, Any] | None]]:
    """Yield each name of two sorted lists, with what is recorded and what is on disk; None where a list lacks it."""
    left, right = next(recorded, None), next(actual, None)
    while left or right:
        if left and right and left[0] == right[0]:
            yield left[0], left[1], right[1]
            left, right = next(recorded, None), next(actual, None)
        elif left and (not right or left[0] < right[0]):
            yield left[0], left[1], None
            left = next(recorded, None)
        elif right:
            yield right[0], None, right[1]
            right = next(actual, None)


def with_checksums(folder: Path, entries: Iterable[FileEntry], progress: Progress = SILENT) -> Iterator[FileEntry]:
    """Add the md5 of tables where it is unknown: those placed unchanged, or by another program."""
    from mlebench.engine.raw_streams import md5_of, stage_if_large

    for name, facts in entries:
        if is_table(name) and "md5" not in facts:
            stage = stage_if_large("checking", facts["size"], progress)
            facts = facts | {"md5": md5_of(folder / name, stage)}
        yield name, facts


def is_table(name: str) -> bool:
    """Whether a file is one of the tables and records that checksums are published for."""
    return name.endswith(TABLES) and name.count("/") == 1


class ContentIdentity:
    """Incremental hash of prepared data; files are added in the order of their names."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._digest = hashlib.sha256()

    def add(self, name: str, facts: dict[str, Any]) -> None:
        if name != _LEFT_OUT:
            line = f"{name}\t{_content(self._folder, name, facts)}\n"
            self._digest.update(line.encode("utf-8", "surrogateescape"))

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def _content(folder: Path, name: str, facts: dict[str, Any]) -> str:
    if is_table(name):
        return (
            _parquet_content(folder / name, facts) if name.endswith(PARQUET) else _table_content(folder / name, facts)
        )
    if name.endswith(ARCHIVES) and name.count("/") == 1:
        return _archive_content(folder / name) or str(facts["size"])
    return str(facts["size"])


def _table_content(path: Path, facts: dict[str, Any]) -> str:
    from mlebench.engine.raw_streams import md5_of

    return f"{facts['size']}\tmd5 {facts.get('md5') or md5_of(path)}"


def _parquet_content(path: Path, facts: dict[str, Any]) -> str:
    from mlebench.engine.parquet import content_hash

    try:
        return f"content {facts.get('content') or content_hash(path)}"
    except ValueError:  # not parquet, whatever its name says
        return _table_content(path, facts)


def _archive_content(path: Path) -> str | None:
    digest = hashlib.sha256()
    try:
        for name, size, crc32 in sorted(_members(path)):
            digest.update(f"{name}\t{size}\t{crc32}\n".encode("utf-8", "surrogateescape"))
    except PrerequisiteError:  # not an archive, whatever its name says
        return None
    return f"members {digest.hexdigest()}"


def _members(path: Path) -> Iterator[tuple[str, int, int]]:
    from mlebench.engine.archives.read_7z import is_7z
    from mlebench.engine.archives.tar_and_7z import packed_files
    from mlebench.engine.archives.zip_tree import ZipTree, is_zip

    if not is_zip(path):
        if is_7z(path):  # a tar has no checksums
            yield from packed_files(path, str(path))
            return
        raise PrerequisiteError(f"{path} is not a zip or 7z archive")
    tree = ZipTree(path)
    for name in tree.glob("**"):
        facts = tree.facts(name)
        yield name, facts["size"], facts["crc32"]
