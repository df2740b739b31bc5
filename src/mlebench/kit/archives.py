"""Zip archives as trees. An archive comes from outside, so it is looked over before anything is taken from it."""

import io
import lzma
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

from mlebench.errors import PrerequisiteError
from mlebench.kit.trees import COPY_BYTES, create, is_finished, missing, pattern_of

# Deflate cannot shrink more than 1032 times, but what is worth competing on does not shrink anywhere near that.
BOMB_RATIO, BOMB_BYTES = 300, 1 << 30
# Members up to this size are read and unpacked in one go; larger ones go through in pieces.
WHOLE_BYTES = 16 << 20
_UTF8_NAME = 0x800  # the flag of a member whose name is UTF-8
_LOCAL_HEADER = struct.Struct("<4s22xHH")


class ZipTree:
    """The files of a zip archive, by name. Files may be taken out by several threads at once."""

    def __init__(self, archive: Path):
        self.label = str(archive)
        with _archive_errors(self.label):
            self._zip = zipfile.ZipFile(archive)
        self._file = os.open(archive, os.O_RDONLY)

    @cached_property
    def _members(self) -> dict[str, zipfile.ZipInfo]:
        members = {info.filename: info for info in self._zip.infolist() if not info.is_dir()}
        _check_members(self.label, self._zip.infolist(), os.fstat(self._file).st_size)
        return members

    def glob(self, pattern: str) -> list[str]:
        matches = pattern_of(pattern).fullmatch
        return sorted(name for name in self._members if matches(name))

    def open(self, name: str) -> BinaryIO:
        info = self._member(name)
        with _archive_errors(self._what(name)):
            return cast(
                BinaryIO, io.BufferedReader(_Member(self._zip.open(info), info.file_size, self._what(name)), COPY_BYTES)
            )

    def path(self, name: str) -> Path | None:  # noqa: ARG002
        return None

    def exists(self, name: str) -> bool:
        return name in self._members

    def size(self, name: str) -> int:
        return self._member(name).file_size

    def facts(self, name: str) -> dict[str, int]:
        info = self._member(name)
        return {"size": info.file_size, "crc32": info.CRC}

    def is_extracted(self, name: str, destination: str) -> bool:
        return is_finished(destination, self.size(name))

    def extract(self, name: str, destination: str) -> None:
        """Write a member to a new file."""
        info = self._member(name)
        if os.path.lexists(
            destination
        ):  # seen before anything is unpacked, when an interrupted attempt is gone on with
            raise FileExistsError(destination)
        methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if info.file_size > WHOLE_BYTES or info.compress_type not in methods or info.flag_bits & 1:
            with self.open(name) as source, create(destination) as target:
                while piece := source.read(COPY_BYTES):
                    target.write(piece)
            return
        with _archive_errors(self._what(name)):
            content = self._read_whole(info)
        with create(destination) as target:
            target.write(content)

    def close(self) -> None:
        self._zip.close()
        os.close(self._file)

    def _member(self, name: str) -> zipfile.ZipInfo:
        try:
            return self._members[name]
        except KeyError:
            raise missing(self, name) from None

    def _read_whole(self, info: zipfile.ZipInfo) -> bytes:
        """A small member: one read from the archive, one call to unpack it. zipfile takes ten times as long."""
        guess = _LOCAL_HEADER.size + len(info.orig_filename) + 64
        start = os.pread(self._file, guess + info.compress_size, info.header_offset)
        if len(start) < _LOCAL_HEADER.size:
            raise EOFError("the archive is cut off")
        signature, name_length, extra_length = _LOCAL_HEADER.unpack_from(start)
        if signature != b"PK\x03\x04":
            raise zipfile.BadZipFile("a member does not begin where it should")
        name = start[_LOCAL_HEADER.size : _LOCAL_HEADER.size + name_length]
        if name.decode("utf-8" if info.flag_bits & _UTF8_NAME else "cp437", "replace") != info.orig_filename:
            raise zipfile.BadZipFile("another member begins where it should")
        begin = _LOCAL_HEADER.size + name_length + extra_length
        end = begin + info.compress_size
        if end > len(start):
            start += os.pread(self._file, end - len(start), info.header_offset + len(start))
        content = start[begin:end]
        if info.compress_type == zipfile.ZIP_DEFLATED:
            content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, info.file_size + 1)
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise zipfile.BadZipFile("its content does not match its checksum")
        return content

    def _what(self, name: str) -> str:
        return f"{self.label}, member {name}"


class _Member(io.RawIOBase):
    """A member of an archive; damage that shows while it is read is told as such."""

    def __init__(self, stream: IO[bytes], size: int, what: str):
        self._stream = stream
        self._size = size
        self._what = what

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._stream.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        with _archive_errors(self._what):
            return self._stream.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        with _archive_errors(self._what):
            content = self._stream.read(len(buffer))
            if len(buffer) and not content and self._stream.tell() != self._size:
                raise zipfile.BadZipFile("it is shorter than it should be")
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _check_members(label: str, members: list[zipfile.ZipInfo], archive_bytes: int) -> None:
    """Refuse an archive that could write where it should not, or more than it should; the member is named."""
    seen: dict[str, str] = {}
    folders = _folders(info.filename for info in members)
    total = 0
    for info in members:
        name = info.filename
        total += info.file_size
        fault = _fault(info)
        if fault is None and not info.is_dir():
            other = seen.setdefault(name.casefold(), name)
            if other is not name:
                fault = f"has the same name as {other}, but for case"
            elif name.casefold() in folders:
                fault = "is a file, but other members lie in a folder of that name"
        if fault is None and total > max(BOMB_BYTES, BOMB_RATIO * archive_bytes):
            fault = "would unpack to far more than the archive can honestly hold"
        if fault:
            raise PrerequisiteError(f"{label}: member {name} {fault}; this archive is not to be trusted")


def _folders(names: Iterable[str]) -> set[str]:
    """All folders that members lie in, but for case."""
    found: set[str] = set()
    for folder in {name.rpartition("/")[0].casefold() for name in names}:
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _fault(info: zipfile.ZipInfo) -> str | None:
    name = info.filename
    if name.startswith("/") or "\\" in name or ".." in PurePosixPath(name).parts or name[1:2] == ":":
        return "would climb out of its folder"
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device"
    if info.file_size > max(BOMB_BYTES, BOMB_RATIO * info.compress_size):
        return "would unpack to far more than it can honestly hold"
    return None


@contextmanager
def _archive_errors(what: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError) as error:
        raise PrerequisiteError(f"{what} cannot be read ({error}); get the archive again") from error
    except OSError as error:
        if error.errno is not None:
            raise
        # how bz2 reports damage
        raise PrerequisiteError(f"{what} cannot be read ({error}); get the archive again") from error
    except RuntimeError as error:  # how zipfile reports an encrypted member
        if "password" not in str(error) and "encrypted" not in str(error):
            raise
        raise PrerequisiteError(f"{what} is encrypted; get the archive again") from error
