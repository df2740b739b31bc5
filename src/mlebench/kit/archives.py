"""Zip archives as trees: members are taken out one by one, in any order."""

import io
import os
import re
import stat
import struct
import zipfile
import zlib
from bisect import bisect_left, bisect_right
from functools import cached_property
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from mlebench.kit.inspection import Inspection, Member, archive_errors
from mlebench.kit.trees import COPY_BYTES, create, create_whole, is_finished, missing, pattern_of

# Members up to this size are read and unpacked in one go; larger ones go through in pieces.
WHOLE_BYTES = 16 << 20
_UTF8_NAME = 0x800  # the flag of a member whose name is UTF-8
_LOCAL_HEADER = struct.Struct("<4s22xHH")


def is_zip(archive: Path) -> bool:
    """By how the file begins: a tar or 7z that ends with a zip inside ends as a zip does, and zipfile looks there."""
    with archive.open("rb") as stream:
        return stream.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


class ZipTree:
    """The files of a zip archive, by name. Files may be taken out by several threads at once."""

    def __init__(self, archive: Path):
        self.label = str(archive)
        with archive_errors(self.label):
            self._zip = zipfile.ZipFile(archive)
        self._file = os.open(archive, os.O_RDONLY)

    @cached_property
    def _members(self) -> dict[str, zipfile.ZipInfo]:
        members = self._zip.infolist()
        inspection = Inspection(self.label, os.fstat(self._file).st_size, (info.filename for info in members))
        for info in members:
            special = stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR)
            inspection.look_at(Member(info.filename, info.file_size, info.is_dir(), special, info.compress_size))
        return {info.filename: info for info in members if not info.is_dir()}

    @cached_property
    def _sorted_names(self) -> list[str]:
        return sorted(self._members)

    def glob(self, pattern: str) -> list[str]:
        matches = pattern_of(pattern).fullmatch
        # Names that match begin with what stands before the first wildcard: one folder among many is found at once.
        start = re.split(r"[*?]", pattern, maxsplit=1)[0]
        first = bisect_left(self._sorted_names, start)
        last = bisect_right(self._sorted_names, start, lo=first, key=lambda name: name[: len(start)])
        return [name for name in self._sorted_names[first:last] if matches(name)]

    def open(self, name: str) -> BinaryIO:
        info = self._member(name)
        with archive_errors(self._what(name)):
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
        with archive_errors(self._what(name)):
            content = self._read_whole(info)
        create_whole(destination, content)

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
        with archive_errors(self._what):
            return self._stream.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        with archive_errors(self._what):
            content = self._stream.read(len(buffer))
            if len(buffer) and not content and self._stream.tell() != self._size:
                raise zipfile.BadZipFile("it is shorter than it should be")
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stream.close()
        super().close()
