"""The raw files of a competition, as `prepare` sees them: read-only, in a folder or an archive, it does not matter."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np

from mlebench.errors import PrerequisiteError
from mlebench.kit.archives import ZipTree, is_zip
from mlebench.kit.frames import CsvSource
from mlebench.kit.jsontext import indented_json
from mlebench.kit.tables import Table
from mlebench.kit.texts import line_blocks
from mlebench.kit.trees import FolderTree, Tree
from mlebench.paths import SCRATCH, twin_record

# Zip archives of ours are the same whenever they are made: sorted members, one timestamp.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class RawFile:
    """One raw file; it may lie inside an archive."""

    tree: Tree
    name: str

    @property
    def path(self) -> PurePosixPath:
        """The name taken apart: `.stem`, `.parent`, `.parts`, `.suffix`."""
        return PurePosixPath(self.name)

    @property
    def size(self) -> int:
        return self.tree.size(self.name)

    def open(self) -> BinaryIO:
        return self.tree.open(self.name)

    def read(self) -> bytes:
        with self.open() as stream:
            return stream.read()

    def head(self, size: int) -> bytes:
        """The first bytes, and no more of the file is read than these."""
        path = self.tree.path(self.name)
        with path.open("rb", buffering=0) if path and path.is_file() else self.open() as stream:
            return stream.read(size)

    def grey_pixels(self) -> np.ndarray:
        """The pixels of an image file, from 0 (black) to 255 (height, width)."""
        from PIL import Image

        with self.open() as stream, Image.open(stream) as image:
            return np.asarray(image.convert("L"))


class Raw:
    """The raw files of a competition, in a folder or an archive. Nothing here writes to them."""

    def __init__(self, tree: Tree, scratch: Path, scaled: Mapping[int, int] | None = None, beside: Path | None = None):
        self._tree = tree
        self._scratch = scratch
        self._scaled = scaled
        self._beside = beside

    def file(self, name: str) -> RawFile:
        return RawFile(self._tree, name)

    def files(self, glob: str) -> list[RawFile]:
        """The files whose names match, sorted by name; `*` stays within a folder, `**` does not."""
        return [self.file(name) for name in self._tree.glob(glob)]

    def exists(self, name: str) -> bool:
        return self._tree.exists(name)

    def holding(self, name: str) -> "Raw":
        """Where a file lies that Kaggle does not have (`beside_archive` in the config): here, or beside the archive."""
        if self.exists(name) or self._beside is None:
            return self
        return Raw(FolderTree(self._beside), self._scratch, self._scaled)

    def open(self, name: str) -> BinaryIO:
        return self._tree.open(name)

    def table(
        self,
        name: str,
        *,
        sep: str = ",",
        dtype: Mapping[str, type] | None = None,
        encoding: str = "utf-8",
    ) -> Table:
        """The rows of a CSV file, or of a parquet file by its name."""
        if name.endswith(".parquet"):
            from mlebench.kit.parquet import ParquetSource

            return Table.from_source(ParquetSource(self._on_disk(name)))
        return Table.from_source(CsvSource(self.file(name).open, sep, dtype, encoding, self._tree.size(name)))

    def records(self, name: str, *, chunk_lines: int | None = None) -> Table:
        """The records of a file of JSON lines, or of BSON documents by its name; a field is a column.

        pandas types JSON `chunk_lines` at a time where it is told to, else the whole file.
        """
        file, size = self.file(name), self._tree.size(name)
        if name.endswith(".bson"):
            from mlebench.kit.bson import BsonSource

            return Table.from_source(BsonSource(file.open, size))
        from mlebench.kit.jsonlines import JsonLinesSource

        return Table.from_source(JsonLinesSource(file.open, size, chunk_lines))

    def tfrecord_values(self, name: str, feature: str) -> list[str]:
        """The text in a feature of each example of a TFRecord file."""
        from mlebench.kit.tfrecords import tfrecord_values

        with self.open(name) as stream:
            return [value.decode("utf-8") for value in tfrecord_values(stream, feature)]

    def array(self, name: str) -> np.ndarray:
        """The array in a npy file. A large one stays on disk, and only what is asked for is read."""
        from mlebench.kit.arrays import LARGE_BYTES, array_errors, map_array, read_array

        with array_errors(f"{self._tree.label}/{name}"):
            if self._tree.size(name) >= LARGE_BYTES:
                return map_array(self._on_disk(name))
            with self.open(name) as stream:
                return read_array(stream)

    def json(self, name: str, *, encoding: str = "utf-8") -> Any:
        return json.loads(self.file(name).read().decode(encoding))

    def json_items(self, name: str) -> Iterator[Any]:
        """The items of a JSON file that is one list, one after another: the file may be larger than memory."""
        from mlebench.kit.jsonlists import json_items

        return json_items(self.open(name))

    def lines(self, name: str, *, encoding: str = "utf-8") -> list[str]:
        return self.file(name).read().decode(encoding).splitlines()

    def line_blocks(self, name: str) -> Iterator[bytes]:
        """A text that is too large for memory, some lines at a time; every line ends with \\n, as in Python's texts."""
        with self.open(name) as stream:
            yield from line_blocks(stream)

    def archive(self, name: str) -> "Raw":
        """The files inside an archive: zip, 7z, or tar, compressed or not."""
        path = self._on_disk(name)
        if is_zip(path) or name.endswith(".zip"):
            return Raw(ZipTree(path), self._scratch, self._scaled)
        from mlebench.kit.unpacking import unpacked

        folder = self._scratch / f"{self._spooled(name).name}-unpacked"
        return Raw(unpacked(path, folder, f"{self._tree.label}/{name}"), self._scratch, self._scaled)

    def member_names(self, name: str) -> list[str]:
        """The names of the files inside an archive, sorted. Nothing is unpacked, however large it is."""
        path = self._on_disk(name)
        if is_zip(path):
            return ZipTree(path).glob("**")
        from mlebench.kit.unpacking import member_names

        return member_names(path, f"{self._tree.label}/{name}")

    def _on_disk(self, name: str) -> Path:
        """Where a file lies by itself; one inside an archive is first taken out, once."""
        path = self._tree.path(name)
        if path is None:
            path = self._spooled(name)
            if not path.exists():
                self._tree.extract(name, str(path))
        elif not path.is_file():
            self._tree.open(name)  # says what is missing
        return path

    def _spooled(self, name: str) -> Path:
        return self._scratch / hashlib.md5(f"{self._tree.label}/{name}".encode()).hexdigest()

    def scaled(self, size: int) -> int:
        """A size that only fits the real data: itself there, and on a twin what the twin says stands for it."""
        return size if self._scaled is None else self._scaled[size]


def encode_json(value: Any, *, indent: int | None = None, sort_keys: bool = False) -> bytes:
    """JSON as Python prints it: ASCII, `, ` and `: ` between items."""
    if indent is not None:
        return indented_json(value, indent, sort_keys=sort_keys)
    return json.dumps(value, sort_keys=sort_keys).encode("ascii")


def md5_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "md5").hexdigest()


@contextmanager
def open_raw(source: Path, scratch: Path | None = None) -> Iterator[Raw]:
    """The raw data in a folder or a zip archive; `scratch` is where inner archives may be unpacked."""
    with TemporaryDirectory(dir=scratch, prefix=SCRATCH) as folder:
        if source.is_dir():
            yield Raw(FolderTree(source), Path(folder), _scaled_sizes(source), source.absolute().parent)
        elif source.is_file():
            yield Raw(ZipTree(source), Path(folder), _scaled_sizes(source), source.absolute().parent)
        else:
            raise PrerequisiteError(f"there is no raw data at {source}")


def _scaled_sizes(source: Path) -> dict[int, int] | None:
    record = twin_record(source)
    if not record.is_file():
        return None
    return {int(real): here for real, here in json.loads(record.read_text(encoding="utf-8"))["scaled"].items()}
