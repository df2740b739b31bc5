"""What `prepare(raw, public, private)` works with: a read-only raw tree and two write-only folders.

`prepare` says what goes where. How bytes get there (linked, copied, taken out of an archive) is decided here.
"""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from mlebench.errors import PrerequisiteError
from mlebench.kit.tables import CsvSource, Quoting, Table
from mlebench.kit.trees import FolderTree, Tree, ZipTree, copy_out, place
from mlebench.paths import twin_record

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

    def open(self) -> BinaryIO:
        return self.tree.open(self.name)

    def read(self) -> bytes:
        with self.open() as stream:
            return stream.read()


class Raw:
    """The raw files of a competition, in a folder or an archive. Nothing here writes to them."""

    def __init__(self, tree: Tree, scratch: Path, scaled: Mapping[int, int] | None = None):
        self._tree = tree
        self._scratch = scratch
        self._scaled = scaled

    def file(self, name: str) -> RawFile:
        return RawFile(self._tree, name)

    def files(self, glob: str) -> list[RawFile]:
        """The files whose names match, sorted by name; `*` stays within a folder, `**` does not."""
        return [self.file(name) for name in self._tree.glob(glob)]

    def exists(self, name: str) -> bool:
        return self._tree.exists(name)

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
        return Table.from_source(CsvSource(self.file(name).open, sep, dtype, encoding))

    def json(self, name: str, *, encoding: str = "utf-8") -> Any:
        return json.loads(self.file(name).read().decode(encoding))

    def lines(self, name: str, *, encoding: str = "utf-8") -> list[str]:
        return self.file(name).read().decode(encoding).splitlines()

    def archive(self, name: str) -> "Raw":
        """The files inside a zip; one that lies inside another archive is first taken out, once."""
        path = self._tree.path(name)
        if path is None:
            path = self._scratch / hashlib.md5(f"{self._tree.label}/{name}".encode()).hexdigest()
            if not path.exists():
                copy_out(self._tree, name, path)
        elif not path.is_file():
            self._tree.open(name)  # says what is missing
        return Raw(ZipTree(path), self._scratch, self._scaled)

    def scaled(self, size: int) -> int:
        """A size that only fits the real data: itself there, and on a twin what the twin says stands for it."""
        return size if self._scaled is None else self._scaled[size]


class Output:
    """A folder that `prepare` fills: tables and JSON are written at once, raw files placed when it is done."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self._placed: dict[str, RawFile] = {}
        self.written: dict[str, str] = {}  # name: md5 of what this program wrote itself

    def write(self, name: str, table: Table, *, quoting: Quoting = "minimal", float_format: str | None = None) -> None:
        with self._create(name) as stream:
            table.write_csv(stream, quoting=quoting, float_format=float_format)

    def write_json(self, name: str, value: Any, *, indent: int | None = None, sort_keys: bool = False) -> None:
        with self._create(name) as stream:
            stream.write(encode_json(value, indent=indent, sort_keys=sort_keys))

    def place(self, file: RawFile, name: str) -> None:
        """A raw file, as it is, under a name."""
        self._claim(name)
        self._placed[name] = file

    def place_each(self, files: Iterable[tuple[RawFile, str]]) -> None:
        for file, name in files:
            self.place(file, name)

    def pack(
        self,
        name: str,
        members: Mapping[str, Table | RawFile | bytes],
        *,
        deflate: bool = False,
        quoting: Quoting = "minimal",
    ) -> None:
        """A zip of tables, raw files and bytes. Stored unless `deflate`: images do not get smaller twice."""
        path = self._path(name)
        with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED) as archive:
            for member in sorted(members):
                info = zipfile.ZipInfo(member, ZIP_TIME)
                info.compress_type = archive.compression
                info.external_attr = 0o644 << 16
                with archive.open(info, "w", force_zip64=True) as stream:
                    _write_member(stream, members[member], quoting)
        self.written[name] = md5_of(path)

    def mkdir(self, name: str) -> None:
        (self._folder / _checked(name)).mkdir(parents=True, exist_ok=True)

    def finish(self) -> None:
        """Put the placed files where they belong."""
        made: set[Path] = set()
        for name, file in self._placed.items():
            target = self._folder / name
            if target.parent not in made:
                target.parent.mkdir(parents=True, exist_ok=True)
                made.add(target.parent)
            place(file.tree, file.name, target)

    @contextmanager
    def _create(self, name: str) -> Iterator["_HashingStream"]:
        with self._path(name).open("xb") as file:
            stream = _HashingStream(file)
            yield stream
        self.written[name] = stream.hash.hexdigest()

    def _path(self, name: str) -> Path:
        self._claim(name)
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _claim(self, name: str) -> None:
        if _checked(name) in self._placed or name in self.written:
            raise ValueError(f"{name} is written twice")


class _HashingStream:
    """A stream that knows the hash of what went through it."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self.hash = hashlib.md5(usedforsecurity=False)

    def write(self, data: bytes, /) -> None:
        self.hash.update(data)
        self._file.write(data)


def encode_json(value: Any, *, indent: int | None = None, sort_keys: bool = False) -> bytes:
    """JSON as Python prints it: ASCII, `, ` and `: ` between items."""
    return json.dumps(value, indent=indent, sort_keys=sort_keys).encode("ascii")


def md5_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "md5").hexdigest()


@contextmanager
def open_raw(source: Path, scratch: Path | None = None) -> Iterator[Raw]:
    """The raw data in a folder or a zip archive; `scratch` is where inner archives may be unpacked."""
    with TemporaryDirectory(dir=scratch, prefix="mlebench-") as folder:
        if source.is_dir():
            yield Raw(FolderTree(source), Path(folder), _scaled_sizes(source))
        elif source.is_file():
            yield Raw(ZipTree(source), Path(folder), _scaled_sizes(source))
        else:
            raise PrerequisiteError(f"there is no raw data at {source}")


def run_prepare(
    prepare: Callable[[Raw, Output, Output], Any], raw: Path, public: Path, private: Path
) -> dict[str, str]:
    """Call a competition's `prepare` on plain paths; the md5 of each file that was written, not placed."""
    outputs = {"public": Output(public), "private": Output(private)}
    with open_raw(raw, scratch=private.parent) as source:
        prepare(source, *outputs.values())
        for output in outputs.values():
            output.finish()
    return {f"{side}/{name}": md5 for side, output in outputs.items() for name, md5 in output.written.items()}


def _scaled_sizes(source: Path) -> dict[int, int] | None:
    record = twin_record(source)
    if not record.is_file():
        return None
    return {int(real): here for real, here in json.loads(record.read_text(encoding="utf-8"))["scaled"].items()}


def _write_member(stream: Any, content: Table | RawFile | bytes, quoting: Quoting) -> None:
    if isinstance(content, Table):
        content.write_csv(stream, quoting=quoting)
    elif isinstance(content, RawFile):
        stream.write(content.read())
    else:
        stream.write(content)


def _checked(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ValueError(f"{name!r} is not a name inside the output folder")
    return name
