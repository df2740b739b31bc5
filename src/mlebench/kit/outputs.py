"""The folders that `prepare` fills. What goes where is noted down first; the bytes are moved when all is known.

So every table that comes from one large file is written in one pass over it, and every raw file goes straight from
where it lies to its place.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Literal, TypeVar

import numpy as np

from mlebench.kit.files import Raw, RawFile, encode_json, open_raw
from mlebench.kit.ledger import Ledger
from mlebench.kit.packing import Pack, PackFormat, pack_format_of, write_pack
from mlebench.kit.parallel import threads
from mlebench.kit.reading import Progress, no_progress
from mlebench.kit.tables import Quoting, Table, Writable
from mlebench.kit.texts import Pieces
from mlebench.kit.trees import COPY_BYTES, FolderTree, check_name, create, is_finished, missing
from mlebench.kit.writing import Advance, Format, Job, write_all
from mlebench.paths import PRIVATE, PUBLIC, SCRATCH

Wanted = TypeVar("Wanted")
BATCH = 1024  # files that one worker places before it asks for more
HASHED_ASIDE = 1 << 16  # bytes from which on another thread is worth its while
TOLD_BYTES = 1 << 20  # between two words about progress
LAST_READ = "The last raw files that were read: "
SAMPLED = 32  # files whose sizes stand for those of all, where only progress is told


class Output:
    """A folder to fill: tables, JSON, raw files and archives of them, each under its name."""

    def __init__(self, folder: Path, ledger: Ledger | None = None):
        self.folder = folder
        self._ledger = ledger
        self.folder.mkdir(parents=True, exist_ok=True)
        self._place = str(folder)
        self.placed: dict[str, RawFile] = {}
        self.tables: dict[str, tuple[Table, Format]] = {}
        self.contents: dict[str, Iterable[bytes]] = {}
        self.packs: dict[str, Pack] = {}
        self.written: dict[str, str] = {}  # name: md5 of what this program wrote itself, when it is finished
        self.linked: dict[str, dict[str, int]] = {}  # what is known of raw files that were placed from a folder
        self._folders: set[str] = set()

    def write(self, name: str, table: Table, *, quoting: Quoting = "minimal", float_format: str | None = None) -> None:
        """A table, as CSV or (by its name) with tabs or as parquet."""
        self._claim(name)
        self.tables[name] = table, Format(_format_of(name), quoting, float_format)

    def write_records(self, name: str, records: Table) -> None:
        """Records in the format of the file they come from: BSON, or JSON lines as pandas prints them."""
        self._claim(name)
        self.tables[name] = records, Format("records")

    def write_json(self, name: str, value: Any, *, indent: int | None = None, sort_keys: bool = False) -> None:
        self._claim(name)
        self.contents[name] = [encode_json(value, indent=indent, sort_keys=sort_keys)]

    def write_pieces(self, name: str, pieces: Pieces) -> None:
        """A file that is too large for memory and is no table of rows that come from another."""
        self._claim(name)
        self.contents[name] = pieces

    def write_lines(self, name: str, lines: Iterable[str]) -> None:
        """A text of these lines, each with its end."""
        self._claim(name)
        self.contents[name] = ["".join(f"{line}\n" for line in lines).encode("utf-8")]

    def write_array(self, name: str, array: np.ndarray, rows: np.ndarray | None = None) -> None:
        """An array, or these rows of it in this order, as an npy file. It may be larger than memory (`raw.array`)."""
        from mlebench.kit.arrays import npy_pieces

        self.write_pieces(name, npy_pieces(array, rows))

    def place(self, file: RawFile, name: str) -> None:
        """A raw file, as it is, under a name."""
        self._claim(name)
        self.placed[name] = file

    def place_each(self, files: Iterable[tuple[RawFile, str]]) -> None:
        for file, name in files:
            self.place(file, name)

    def place_tree(self, raw: Raw, folder: str, name: str, *, exclude: Sequence[str] = ()) -> None:
        """All files below a raw folder, as they are, below another.

        Patterns in `exclude`, as those of `raw.files` but from the folder on, leave files out.
        """
        files = raw.files(f"{folder}/**")
        if not files:
            raise missing(raw.file(folder).tree, f"{folder}/")
        excluded = {file.name for pattern in exclude for file in raw.files(f"{folder}/{pattern}")}
        self.place_each((file, name + file.name[len(folder) :]) for file in files if file.name not in excluded)

    def pack(
        self,
        name: str,
        members: Mapping[str, Table | RawFile | Pieces | bytes],
        *,
        format: PackFormat | None = None,
        deflate: bool = False,
        quoting: Quoting = "minimal",
    ) -> None:
        """An archive of tables, raw files, pieces and bytes, of the format that its name says unless another is given.

        In a zip or 7z they are stored unless `deflate`: images do not get smaller twice, and a name that ends with a
        slash is an empty folder.
        """
        self._claim(name)
        self.packs[name] = Pack(dict(members), format or pack_format_of(name), deflate, quoting)

    def mkdir(self, name: str) -> None:
        check_name(name)
        (self.folder / name).mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> str:
        """Where a file goes; its folder is made, and what an earlier attempt left there is not in the way."""
        folder, _, _ = name.rpartition("/")
        if folder not in self._folders:
            os.makedirs(f"{self._place}/{folder}", exist_ok=True)  # noqa: PTH103 there may be many
            self._folders.add(folder)
        return f"{self._place}/{name}"

    @contextmanager
    def create(self, name: str, advance: Advance = lambda _: None) -> Iterator[Writable]:
        """A new file whose hash is taken while it is written; tells the size of each piece."""
        path = self.path(name)
        Path(path).unlink(missing_ok=True)
        with create(path, buffering=COPY_BYTES) as file, ThreadPoolExecutor(1) as pool:
            stream = _HashingStream(file, pool, advance)
            yield stream
        self.written[name] = stream.hash.hexdigest()
        if self._ledger:
            self._ledger.add(f"{self.folder.name}/{name}", stream.tell(), self.written[name])

    def is_written(self, name: str) -> bool:
        """Whether an interrupted attempt has written this file already; then it stays as it is."""
        known = self._ledger.known.get(f"{self.folder.name}/{name}") if self._ledger else None
        path = self.path(name)
        if known is None or not os.path.lexists(path) or not is_finished(path, known.size):
            return False
        self.written[name] = known.md5
        return True

    def facts(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What is known of each file when all are finished: md5 of those we wrote, facts of those we placed."""
        for name, md5 in self.written.items():
            yield name, self._written_facts(name, md5)
        for name, file in self.placed.items():
            yield name, self.linked.get(name) or file.tree.facts(file.name)

    def _written_facts(self, name: str, md5: str) -> dict[str, Any]:
        path = Path(self.path(name))
        facts: dict[str, Any] = {"size": path.stat().st_size, "md5": md5}
        if name in self.tables and self.tables[name][1].name == "parquet":
            from mlebench.kit.parquet import content_hash

            facts["content"] = content_hash(path)
        return facts

    @cached_property
    def placed_size(self) -> float:
        """The size of a placed file, about."""
        return _mean_size(list(self.placed.values()))

    def _claim(self, name: str) -> None:
        check_name(name)
        if name in self.placed or name in self.tables or name in self.contents or name in self.packs:
            raise ValueError(f"{name} is written twice")


def _mean_size(files: Sequence[RawFile]) -> float:
    """A sample tells, since a look at each of a million files takes long."""
    sample = files[:: max(1, len(files) // SAMPLED)]
    return sum(file.size for file in sample) / max(1, len(sample))


def _format_of(name: str) -> Literal["csv", "tsv", "parquet"]:
    if name.endswith(".tsv"):
        return "tsv"
    return "parquet" if name.endswith(".parquet") else "csv"


class _HashingStream:
    """A stream that knows the hash of what went through it; large pieces are hashed while the next one is made."""

    def __init__(self, file: BinaryIO, pool: ThreadPoolExecutor, advance: Advance):
        self._file = file
        self._advance = advance
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
        self._advance(len(data))
        return self._file.write(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        """Whoever made the file does that."""


def run_prepare(
    prepare: Callable[[Raw, Output, Output], Any],
    raw: Path,
    public: Path,
    private: Path,
    progress: Progress = no_progress,
    reading: Progress = no_progress,
    unpacked: Path | None = None,
    ledger: Path | None = None,
) -> dict[str, dict[str, Any]]:
    """Call a competition's `prepare` on plain paths; what is known of each file, under `public/` and `private/`.

    `progress` is told of what is written and placed, `reading` of each large file that is looked into before. What an
    earlier attempt left in the folder `unpacked`, or noted in the `ledger`, is not unpacked or written again.
    """
    noted = Ledger(ledger) if ledger else None
    outputs = {PUBLIC: Output(public, noted), PRIVATE: Output(private, noted)}
    with open_raw(raw, private.parent, reading, unpacked) as source:
        try:
            prepare(source, *outputs.values())
            finish(list(outputs.values()), private.parent, progress)
        except Exception as error:
            if source.opened:
                error.add_note(f"{LAST_READ}{', '.join([*source.opened][-3:])}")
            raise
        return {f"{side}/{name}": facts for side, output in outputs.items() for name, facts in output.facts()}


def finish(outputs: Sequence[Output], scratch: Path, progress: Progress = no_progress) -> None:
    """Write and place all that was noted down."""
    done, told, total = 0, 0, _weight(outputs)

    def advance(size: int) -> None:
        nonlocal done, told
        done = min(done + size, total)
        if done - told >= TOLD_BYTES:  # a packed archive is written in very small pieces
            told = done
            progress(done, total)

    progress(0, total)
    with TemporaryDirectory(dir=scratch, prefix=SCRATCH) as folder:
        write_all(list(_table_jobs(outputs, Path(folder))), Path(folder), advance)
        for output in outputs:
            for name, content in _unwritten(output, output.contents):
                with output.create(name) as stream:
                    for piece in content:
                        stream.write(piece)
            for name, pack in _unwritten(output, output.packs):
                with output.create(name, advance) as stream:
                    write_pack(stream, pack, Path(folder))
            _place(output, advance)
    progress(total, total)


def _unwritten(output: Output, wanted: Mapping[str, Wanted]) -> Iterator[tuple[str, Wanted]]:
    return ((name, content) for name, content in wanted.items() if not output.is_written(name))


def _weight(outputs: Sequence[Output]) -> int:
    """How many bytes will be read from raw files, about; a table's file counts once, what is packed as it is packed."""
    written = [table for output in outputs for table, _ in output.tables.values()]
    packed = [member for output in outputs for pack in output.packs.values() for member in pack.members.values()]
    sources = {id(table.source): table.source for table in [*written, *packed] if isinstance(table, Table)}
    placed = sum(int(output.placed_size * len(output.placed)) for output in outputs)
    files = [member for member in packed if isinstance(member, RawFile)]
    return placed + int(_mean_size(files) * len(files)) + sum(source.size for source in sources.values())


def _table_jobs(outputs: Sequence[Output], scratch: Path) -> Iterator[Job]:
    for output in outputs:
        for name, (table, format) in _unwritten(output, output.tables):
            yield Job(table, format, lambda output=output, name=name: output.create(name))
        for _, pack in _unwritten(output, output.packs):
            for member, content in pack.members.items():
                if isinstance(content, Table):
                    path = pack.spooled[member] = scratch / f"{id(pack)}-{len(pack.spooled)}"
                    opened = lambda path=path: create(str(path), buffering=COPY_BYTES)  # noqa: E731
                    yield Job(content, Format(_format_of(member), pack.quoting), opened)


def _place(output: Output, advance: Advance) -> None:
    """Raw files, to their places; those that an interrupted attempt has placed already are left alone."""
    names = list(output.placed)
    for name in names:
        output.path(name)  # makes the folders

    def place_batch(start: int) -> int:
        batch = names[start : start + BATCH]
        for name in batch:
            file, path = output.placed[name], output.path(name)
            try:
                file.tree.extract(file.name, path)
            except FileExistsError:
                if not file.tree.is_extracted(file.name, path):
                    Path(path).unlink()
                    file.tree.extract(file.name, path)
            if isinstance(file.tree, FolderTree):  # while it is at hand; an archive has it in memory
                status = os.stat(path)  # of the placed file: its disk may keep times less exactly
                output.linked[name] = {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
        return int(output.placed_size * len(batch))

    with ThreadPoolExecutor(threads()) as pool:
        spread = pool.map if len(names) > BATCH else map
        for size in spread(place_batch, range(0, len(names), BATCH)):
            advance(size)
