"""One hash that identifies prepared data, wherever, whenever and from whatever source it was prepared.

It is made from the files alone, so data that another program prepared has one too. Every file counts by its name and
size. Tables and records directly in public/ and private/ (the answers, and the files with published checksums) count
by their bytes; parquet by its content, since its bytes depend on the library that wrote them; zip and 7z by their
members' content, since compressed sizes depend on a library too. The description is left out: it may be corrected.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mlebench.core.errors import PrerequisiteError
from mlebench.core.paths import DESCRIPTION, PRIVATE, PUBLIC
from mlebench.engine.progress import SILENT, Progress

Entry = tuple[str, dict[str, Any]]  # a file's name under the prepared folder; its size, and md5, crc32 or mtime_ns
Files = dict[str, dict[str, Any]]  # a few entries
SIDES = (PUBLIC, PRIVATE)
PARQUET = ".parquet"
TABLES = (".csv", ".json", ".jsonl", PARQUET, ".bson")
ARCHIVES = (".zip", ".7z")
_LEFT_OUT = f"{PUBLIC}/{DESCRIPTION}"


def with_checksums(folder: Path, entries: Iterable[Entry], progress: Progress = SILENT) -> Iterator[Entry]:
    """Add the md5 of tables where it is unknown: those placed unchanged, or by another program."""
    from mlebench.engine.reading import md5_of, stage_if_large

    for name, facts in entries:
        if is_table(name) and "md5" not in facts:
            stage = stage_if_large("checking", facts["size"], progress)
            facts = facts | {"md5": md5_of(folder / name, stage)}
        yield name, facts


def is_table(name: str) -> bool:
    """Whether a file is one of the tables and records that checksums are published for."""
    return name.endswith(TABLES) and name.count("/") == 1


class ContentIdentity:
    """The hash in the making; files come in the order of their names."""

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
    from mlebench.engine.reading import md5_of

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
