"""The raw files of a competition, as `prepare` sees them: read-only, whether in a folder or an archive."""

import hashlib
import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np

from mlebench.core.authors import checked
from mlebench.core.errors import CompetitionError, PrerequisiteError
from mlebench.core.paths import SCRATCH, twin_record
from mlebench.engine.archives.zip_tree import ZipTree, is_zip
from mlebench.engine.byte_chunks import ByteChunks, line_blocks
from mlebench.engine.csv.csv_source import CsvSource
from mlebench.engine.progress import SILENT, Progress
from mlebench.engine.raw_streams import data_errors, stage_if_large, watched
from mlebench.engine.tables import Table, TableSource
from mlebench.engine.trees import COPY_BYTES, FolderTree, Tree, TreeFile, create


@dataclass(frozen=True, slots=True)
class RawFile(TreeFile):
    """One raw file; it may be inside an archive."""

    @property
    def path(self) -> PurePosixPath:
        """The name taken apart: `.stem`, `.parent`, `.parts`, `.suffix`."""
        return PurePosixPath(self.name)

    def head(self, size: int) -> bytes:
        """The first bytes; the rest of the file is not read."""
        path = self.tree.path(self.name)
        with path.open("rb", buffering=0) if path and path.is_file() else self.open() as stream:
            return stream.read(size)

    def grey_pixels(self) -> np.ndarray:
        """The pixels of an image file, from 0 (black) to 255 (height, width)."""
        from PIL import Image

        with self.errors(), self.open() as stream, Image.open(stream) as image:
            return np.asarray(image.convert("L"))

    def errors(self) -> AbstractContextManager[None]:
        """Wraps code that parses the file's bytes: errors there are the file's fault."""
        return data_errors(self.tree.label_of(self.name))


class Raw:
    """The raw files of a competition, in a folder or an archive. Nothing here writes to them."""

    def __init__(
        self,
        tree: Tree,
        scratch: Path,
        scaled: Mapping[int, int] | None = None,
        beside: Path | None = None,
        progress: Progress = SILENT,
        opened: dict[str, None] | None = None,
    ):
        self.opened = {} if opened is None else opened  # files that were read so far, the last one at the end
        self._tree = tree
        self._scratch = scratch
        self._scaled = scaled
        self._beside = beside
        self._progress = progress

    def file(self, name: str) -> RawFile:
        return RawFile(self._tree, name)

    @checked
    def files(self, glob: str) -> list[RawFile]:
        """The files whose names match, sorted by name; `*` stays within a folder, `**` does not."""
        return [self.file(name) for name in self._tree.glob(glob)]

    def exists(self, name: str) -> bool:
        return self._tree.exists(name)

    @checked
    def beside_archive(self, name: str) -> "Raw":
        """Where a file is that Kaggle does not have (`beside_archive` in the config): here, or beside the archive."""
        if self.exists(name) or self._beside is None:
            return self
        return self._with(FolderTree(self._beside))

    @checked
    def open(self, name: str) -> BinaryIO:
        self._note(name)
        return self._tree.open(name)

    def _note(self, name: str) -> None:
        self.opened.pop(label := self._tree.label_of(name), None)
        self.opened[label] = None

    def _errors(self, name: str) -> AbstractContextManager[None]:
        self._note(name)
        return data_errors(self._tree.label_of(name))

    def _table(self, name: str, source: TableSource) -> Table:
        source.label = self._tree.label_of(name)
        with self._errors(name):
            return Table.from_source(source)

    def _with(self, tree: Tree) -> "Raw":
        return Raw(tree, self._scratch, self._scaled, progress=self._progress, opened=self.opened)

    def _watched(self, name: str) -> BinaryIO:
        """Open a file and report progress, since reading may take a while."""
        return watched(self.open(name), self._tree.size(name), self._progress)

    @checked
    def table(
        self,
        name: str,
        *,
        sep: str = ",",
        dtype: Mapping[str, type] | None = None,
        encoding: str = "utf-8",
        text: Collection[str] = (),
    ) -> Table:
        """The rows of a CSV or parquet file, depending on its name.

        In a CSV file's columns of `text` every cell is text as it stands; elsewhere `NA`, `null` and the like are gaps.
        """
        if name.endswith(".parquet"):
            from mlebench.engine.parquet import ParquetSource

            with self._errors(name):
                return self._table(name, ParquetSource(self._on_disk(name), self._progress))
        opened, size = partial(self.open, name), self._tree.size(name)
        return self._table(name, CsvSource(opened, sep, dtype, encoding, size, partial(self._watched, name), text))

    @checked
    def records(self, name: str, *, chunk_lines: int | None = None) -> Table:
        """The records of a JSON lines file, or of a BSON file if its name says so; a field is a column.

        JSON is typed as by pandas: `chunk_lines` at a time if given, otherwise the whole file.
        """
        opened, size = partial(self._watched, name), self._tree.size(name)
        if name.endswith(".bson"):
            from mlebench.engine.records.bson import BsonSource

            source = BsonSource(opened, size)
        else:
            from mlebench.engine.records.jsonlines import JsonLinesSource

            source = JsonLinesSource(opened, size, chunk_lines)
        source.open_unwatched = partial(self.open, name)
        return self._table(name, source)

    @checked
    def tfrecord_values(self, name: str, feature: str) -> list[str]:
        """The text in a feature of each example of a TFRecord file."""
        from mlebench.engine.records.tfrecords import tfrecord_values

        with self._errors(name), self._watched(name) as stream:
            return [value.decode("utf-8") for value in tfrecord_values(stream, feature)]

    def select_tfrecords(
        self, name: str, feature: str, values: Iterable[str], kept: Collection[str] | None = None
    ) -> ByteChunks:
        """A TFRecord file of those examples whose feature has one of these texts; with `kept`, of these features only.

        It is made record by record: the file may be larger than memory.
        """
        from mlebench.engine.records.tfrecords import select_tfrecords

        wanted = frozenset(value.encode("utf-8") for value in values)

        def records() -> Iterator[bytes]:
            with self._errors(name), self._watched(name) as stream:
                yield from select_tfrecords(stream, feature, wanted, kept)

        return ByteChunks(records)

    def without_struct_field(self, name: str, variable: str, field: str) -> ByteChunks:
        """A MAT file whose variable, a struct, lacks one of its fields; all else in it stays."""
        from mlebench.engine.records.matlab import without_struct_field

        def content() -> Iterator[bytes]:
            with self._errors(name):
                yield without_struct_field(self.file(name).read(), variable, field)

        return ByteChunks(content)

    @checked
    def array(self, name: str) -> np.ndarray:
        """The array in an npy file. A large one stays on disk, and only the parts used are read."""
        from mlebench.engine.arrays import LARGE_BYTES, map_array, read_array

        with self._errors(name):
            if self._tree.size(name) >= LARGE_BYTES:
                return map_array(self._on_disk(name))
            with self.open(name) as stream:
                return read_array(stream)

    @checked
    def json(self, name: str, *, encoding: str = "utf-8") -> Any:
        with self._errors(name):
            text = self._read(name).decode(encoding)
            stage = stage_if_large("parsing", len(text), self._progress)
            value = json.loads(text)
        stage.finish()
        return value

    @checked
    def json_with_records(self, name: str, *lists: str, encoding: str = "utf-8") -> dict[str, Any]:
        """Read a JSON object with long lists of records; those named are returned as `Records`."""
        from mlebench.engine.records.jsonrecords import read_with_records

        with self._errors(name):
            text = self._read(name)
            if encoding != "utf-8":
                text = text.decode(encoding).encode("utf-8")
            stage = stage_if_large("parsing", len(text), self._progress)
            value = read_with_records(text, lists, stage)
        stage.finish()
        return value

    def _read(self, name: str) -> bytes:
        with self._watched(name) as stream:
            return stream.read()

    def json_items(self, name: str) -> Iterator[Any]:
        """The items of a JSON file that is one list, one after another: the file may be larger than memory."""
        from mlebench.engine.records.jsonlists import json_items

        with self._errors(name):
            yield from json_items(self._watched(name))

    @checked
    def lines(self, name: str, *, encoding: str = "utf-8") -> list[str]:
        with self._errors(name):
            return self.file(name).read().decode(encoding).splitlines()

    def line_blocks(self, name: str) -> Iterator[bytes]:
        """A text that is too large for memory, some lines at a time; line ends become \\n, as in Python's texts."""
        with self._watched(name) as stream:
            yield from line_blocks(stream)

    @checked
    def archive(self, name: str) -> "Raw":
        """The files inside an archive: zip, 7z, or tar, compressed or not."""
        path, label = self._on_disk(name), self._tree.label_of(name)
        if is_zip(path) or name.endswith(".zip"):
            return self._with(ZipTree(path, label))
        from mlebench.engine.archives.tar_and_7z import unpacked

        folder = self._scratch / f"{self._spooled(name).name}-unpacked"
        return self._with(unpacked(path, folder, label, self._progress))

    @checked
    def member_names(self, name: str) -> list[str]:
        """The names of the files inside an archive, sorted. Nothing is unpacked, however large it is."""
        path, label = self._on_disk(name), self._tree.label_of(name)
        if is_zip(path):
            return ZipTree(path, label).glob("**")
        from mlebench.engine.archives.tar_and_7z import packed_files

        return sorted(file.name for file in packed_files(path, label, self._progress))

    def _on_disk(self, name: str) -> Path:
        """A file's own path on disk; a file inside an archive is extracted first, once."""
        self._note(name)
        path = self._tree.path(name)
        if path is None:
            path = self._spooled(name)
            if not path.exists() or not self._tree.is_extracted(name, str(path)):
                path.unlink(missing_ok=True)
                time_ns = self._tree.time_ns(name)
                with self._watched(name) as source, create(str(path), time_ns=time_ns) as target:
                    shutil.copyfileobj(source, target, COPY_BYTES)
        elif not path.is_file():
            self._tree.open(name)  # says what is missing
        return path

    def _spooled(self, name: str) -> Path:
        return self._scratch / hashlib.md5(self._tree.label_of(name).encode()).hexdigest()

    def scaled(self, size: int) -> int:
        """A size meant for the real data: unchanged there; on a twin, the size that the twin declares in its place."""
        if self._scaled is not None and size not in self._scaled:
            raise CompetitionError(f"the twin does not say what stands for {size}: call `raw.set_scaled` in it")
        return size if self._scaled is None else self._scaled[size]


@contextmanager
def open_raw(
    source: Path, scratch: Path | None = None, progress: Progress = SILENT, unpacked: Path | None = None
) -> Iterator[Raw]:
    """Open the raw data in a folder or a zip archive.

    Inner archives are unpacked in `scratch`, or in `unpacked`, where they stay so that an interrupted prepare can
    resume. `progress` is told how far each large file has been read.
    """
    if not source.is_dir() and not source.is_file():
        raise PrerequisiteError(f"there is no raw data at {source}")
    with ExitStack() as stack:
        if unpacked:
            unpacked.mkdir(exist_ok=True)
        folder = unpacked or stack.enter_context(TemporaryDirectory(dir=scratch, prefix=SCRATCH))
        tree = FolderTree(source) if source.is_dir() else ZipTree(source)
        yield Raw(tree, Path(folder), _scaled_sizes(source), source.absolute().parent, progress)


def _scaled_sizes(source: Path) -> dict[int, int] | None:
    record = twin_record(source)
    if not record.is_file():
        return None
    return {int(real): scaled for real, scaled in json.loads(record.read_text(encoding="utf-8"))["scaled"].items()}
