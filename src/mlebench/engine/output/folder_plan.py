"""What goes into a folder: recorded first, so that few passes over the raw files write all of it."""

import hashlib
import json
import os
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from heapq import merge
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from mlebench.core.errors import CompetitionError, RawDataError
from mlebench.engine.archives.write_archive import Pack
from mlebench.engine.output.placements import Placements
from mlebench.engine.parquet import ParquetFormat, content_hash
from mlebench.engine.progress import SILENT, SILENT_STAGE, Progress, Stage
from mlebench.engine.raw_streams import stage_if_large
from mlebench.engine.tables import Format, Table, Writable
from mlebench.engine.trees import COPY_BYTES, FolderTree, TreeFile, check_name, create

HASHED_ASIDE = 1 << 16  # bytes above which hashing in another thread pays off
SAMPLED = 256  # the most files whose sizes stand for all of their kind, where only progress needs them
OUTSTANDING = 64  # times the size of most others: such a file counts only for itself


class WrittenFile(NamedTuple):
    size: int
    md5: str


class WrittenFiles:
    """A file with a line for each finished file and its md5, so that an interrupted attempt does not write it again."""

    def __init__(self, path: Path):
        self._path = path
        self.known: dict[str, WrittenFile] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            try:
                name, size, md5 = json.loads(line)
            except ValueError:
                continue
            self.known[name] = WrittenFile(size, md5)

    def add(self, name: str, size: int, md5: str) -> None:
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(f"\n{json.dumps([name, size, md5])}\n")  # the line before may be one that was cut off


class FolderPlan:
    """The files of one folder: what each will hold, and what is known about it once it exists."""

    def __init__(self, folder: Path, recorded: WrittenFiles | None = None, planning: Stage = SILENT_STAGE):
        self.folder = folder
        self._recorded = recorded
        self.folder.mkdir(parents=True, exist_ok=True)
        self._root = str(folder)
        self.placed = Placements(planning)
        self.placed_sizes = Sizes(())  # known once the plan is checked
        self.tables: dict[str, tuple[Table, Format]] = {}
        self.contents: dict[str, Iterable[bytes]] = {}
        self.packs: dict[str, Pack] = {}
        self.written: dict[str, str] = {}  # name: md5 of each finished file that we wrote ourselves
        self.linked = array("q")  # size and time of each file that was placed from a folder, in the order of names
        self._folders: set[str] = set()
        self._contents: dict[str, str] = {}  # hashes of parquet files, for which all that was written is read

    def claim(self, name: str) -> None:
        """Refuse a name that leads out of the folder or is taken by a file we write."""
        check_name(name)
        if name in self.tables or name in self.contents or name in self.packs:
            raise CompetitionError(f"{name} is written twice: give one of the two another name")

    def check(self) -> None:
        """Refuse a name that is taken, even by a placed file; call this before anything is written."""
        self.placed_sizes = Sizes(self._checked_files())

    def _checked_files(self) -> Iterator[TreeFile]:
        written = {*self.tables, *self.contents, *self.packs}
        before, before_source = None, ""
        for name, tree, source in self.placed:
            if name == before or name in written:
                reason = (
                    f"{tree.label_of(before_source)} is placed there too" if name == before else "it is also written"
                )
                raise RawDataError(f"{name} is written twice: {tree.label_of(source)} is placed there, and {reason}")
            yield TreeFile(tree, source)
            before, before_source = name, source

    def path(self, name: str) -> str:
        """Where a file goes; its folder is created, or was left there by an earlier attempt."""
        folder, _, _ = name.rpartition("/")
        if folder not in self._folders:
            os.makedirs(f"{self._root}/{folder}", exist_ok=True)  # noqa: PTH103 there may be many
            self._folders.add(folder)
        return f"{self._root}/{name}"

    @contextmanager
    def create(self, name: str, stage: Stage = SILENT_STAGE) -> Iterator[Writable]:
        """A new file whose hash is taken while it is written."""
        path = self.path(name)
        Path(path).unlink(missing_ok=True)
        with create(path, buffering=COPY_BYTES) as file, ThreadPoolExecutor(1) as pool:
            stream = _HashingStream(file, pool, stage)
            yield stream
        self.written[name] = stream.hash.hexdigest()
        if self._recorded:
            self._recorded.add(f"{self.folder.name}/{name}", stream.tell(), self.written[name])

    def is_written(self, name: str) -> bool:
        """Whether an interrupted attempt has written this file already; then it stays as it is."""
        known = self._recorded.known.get(f"{self.folder.name}/{name}") if self._recorded else None
        path = self.path(name)
        if known is None or not os.path.lexists(path) or os.lstat(path).st_size != known.size:
            return False
        self.written[name] = known.md5
        return True

    def facts(self, progress: Progress = SILENT) -> Iterator[tuple[str, dict[str, Any]]]:
        """What is known about each finished file, sorted by name: md5 of those we wrote, facts of those we placed."""
        written = [(name, self._facts_of_written(name, md5, progress)) for name, md5 in sorted(self.written.items())]
        return merge(written, self._placed_facts(), key=itemgetter(0))

    def _facts_of_written(self, name: str, md5: str, progress: Progress) -> dict[str, Any]:
        path = Path(self.path(name))
        facts: dict[str, Any] = {"size": path.stat().st_size, "md5": md5}
        if name in self.tables and self.tables[name][1].name == ParquetFormat.name:
            if name not in self._contents:
                self._contents[name] = content_hash(path, stage_if_large("checking", facts["size"], progress))
            facts["content"] = self._contents[name]
        return facts

    def _placed_facts(self) -> Iterator[tuple[str, dict[str, int]]]:
        linked = iter(self.linked)
        for name, tree, source in self.placed:
            if isinstance(tree, FolderTree):
                yield name, {"size": next(linked), "mtime_ns": next(linked)}
            else:
                yield name, tree.facts(source)


class Sizes:
    """About how large each of many files is, judged by a sample, since examining a million of them takes long."""

    def __init__(self, files: Iterable[TreeFile]):
        kinds: defaultdict[str, _Sample] = defaultdict(_Sample)
        for file in files:
            kinds[_kind(file.name)].add(file)
        self._known: dict[TreeFile, int] = {}
        self._typical: dict[str, int] = {}
        self.total = 0
        for kind, files_of_kind in kinds.items():
            sample = {file: file.size for file in files_of_kind.files}
            most = OUTSTANDING * sorted(sample.values())[len(sample) // 2]
            known = {file: size for file, size in sample.items() if size > most or len(sample) == files_of_kind.count}
            usual = [size for size in sample.values() if size <= most]
            self._known |= known
            self._typical[kind] = round(sum(usual) / len(usual))
            self.total += sum(known.values()) + self._typical[kind] * (files_of_kind.count - len(known))

    def of(self, file: TreeFile) -> int:
        size = self._known.get(file) if self._known else None
        return self._typical[_kind(file.name)] if size is None else size


class _Sample:
    """Files from all parts of a series of unknown length: every n-th, for a growing n."""

    def __init__(self) -> None:
        self.files: list[TreeFile] = []
        self.count = 0
        self._every = 1

    def add(self, file: TreeFile) -> None:
        if self.count % self._every == 0:
            if len(self.files) == SAMPLED:
                self.files = self.files[::2]
                self._every *= 2
            self.files.append(file)
        self.count += 1


def _kind(name: str) -> str:
    """Files of one kind, such as images, have about the same size; tables among them do not."""
    suffix = name[-8:].rpartition(".")[2]
    return "" if "/" in suffix or len(suffix) == 8 else suffix


class _HashingStream:
    """A stream that knows the hash of what went through it; large pieces are hashed while the next one is made."""

    def __init__(self, file: BinaryIO, pool: ThreadPoolExecutor, stage: Stage):
        self._file = file
        self._stage = stage
        self._pool = pool
        self._hashing: Future[None] | None = None
        self._written = 0
        self.hash = hashlib.md5(usedforsecurity=False)
        self.closed = False

    def write(self, data: bytes | memoryview, /) -> int:
        if self._hashing:
            self._hashing.result()
        if len(data) < HASHED_ASIDE:
            self._hashing = None
            self.hash.update(data)
        else:
            self._hashing = self._pool.submit(self.hash.update, data)
        self._written += len(data)
        self._stage.advance(len(data))
        return self._file.write(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        """Left to the code that opened the file."""
