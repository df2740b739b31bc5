"""Zip archives as trees: members are taken out one by one, in any order."""

import io
import os
import re
import stat
import struct
import zipfile
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

from mlebench.core.errors import PrerequisiteError
from mlebench.engine.archives.member_checks import ArchiveMember, MemberChecks, archive_errors, plain_name
from mlebench.engine.trees import (
    COPY_BYTES,
    TIME_GRAINS,
    create,
    create_whole,
    ignore_progress,
    inside,
    is_complete,
    missing,
    pattern_of,
)

# Members up to this size are read and unpacked in one go; larger ones go through in pieces.
WHOLE_BYTES = 16 << 20
_UTF8_NAME, _ENCRYPTED = 0x800, 1  # flags of a member: its name is UTF-8, its content needs a password
_LOCAL_HEADER = struct.Struct("<4s22xHH")
# Where the end of an archive holds the number of members: one record for a few members, one for any number.
_END, _COMMENT_BYTES = struct.Struct("<4s6xH10x"), 1 << 16
_BIG_END, _LOCATOR_BYTES = struct.Struct("<4s28xQ16x"), 20


def is_zip(archive: Path) -> bool:
    """Judged by how the file begins: zipfile looks at the end, where a tar or 7z may hold a zip."""
    with archive.open("rb") as stream:
        return stream.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


class _MemberLocation(NamedTuple):
    """Where a member is. There may be millions, so entries are kept packed: zipfile's own take six times the memory."""

    offset: int
    packed_size: int
    size: int
    crc32: int
    method: int
    flags: int

    def as_zipfile_knows_it(self, name: str) -> zipfile.ZipInfo:
        info = zipfile.ZipInfo(name)
        info.header_offset, info.compress_size, info.file_size, info.CRC, info.compress_type, info.flag_bits = self
        return info


_PACKED_ENTRY = struct.Struct("<qQQLHH")
_NOWHERE = (1 << 63) - 1  # an offset as large as can be packed; zipfile's come from arithmetic on what a file says


class ZipTree:
    """The files of a zip archive, by name. Files may be taken out by several threads at once."""

    def __init__(self, archive: Path, label: str | None = None):
        """`label` names an archive that was inside another and is now in a scratch folder."""
        self.label = label or str(archive)
        self._before = inside(self.label)
        with archive_errors(self.label):
            self._zip = zipfile.ZipFile(archive)
        self._file = cast(BinaryIO, self._zip.fp).fileno()  # read with pread, which leaves zipfile's position alone
        status = os.fstat(self._file)
        self._bytes = status.st_size
        self._time_ns = status.st_mtime_ns // TIME_GRAINS[-1] * TIME_GRAINS[-1]  # no new file has such a round time
        self._packed_names: dict[str, str] = {}  # of members whose name is not a plain one
        try:
            with archive_errors(self.label):
                self._check_count(len(self._zip.filelist))
            self._check_members()
            self._names, self._entries = self._take_members()
        except BaseException:
            self._zip.close()
            raise

    def _check_count(self, counted: int) -> None:
        """A damaged length in the list of members may hide those behind it; zipfile does not count."""
        longest = _BIG_END.size + _LOCATOR_BYTES + _END.size + _COMMENT_BYTES
        tail = os.pread(self._file, longest, max(0, self._bytes - longest))
        at = tail.rfind(b"PK\x05\x06", 0, len(tail) - _END.size + 4)
        _, count = _END.unpack_from(tail, at)
        before = at - _LOCATOR_BYTES - _BIG_END.size
        if count == 0xFFFF and before >= 0 and tail.startswith(b"PK\x06\x06", before):
            _, count = _BIG_END.unpack_from(tail, before)
        if not counted and os.pread(self._file, 4, 0) == b"PK\x03\x04":
            raise zipfile.BadZipFile("it begins with a member, but lists none")
        if count not in (counted, counted & 0xFFFF, min(counted, 0xFFFF)):  # the count may not fit in two bytes
            raise zipfile.BadZipFile(f"it says that it holds {count} members, but lists {counted}")

    def _check_members(self) -> None:
        infos = self._zip.filelist
        checks = MemberChecks(self.label, self._bytes, (info.orig_filename for info in infos))
        for info in infos:
            # The name as stored: zipfile cuts it at a NUL, and prefers one from an extra field.
            name, is_folder = plain_name(info.orig_filename), info.orig_filename.endswith("/")
            special = stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR)
            checks.check(ArchiveMember(name, info.file_size, is_folder, special, info.compress_size))

    def _take_members(self) -> tuple[list[str], bytes]:
        """The names of files, sorted, and their packed entries in the same order; zipfile forgets them."""
        infos = self._zip.filelist
        self._zip.NameToInfo.clear()
        infos.reverse()
        names: list[str] = []
        entries: list[bytes] = []
        while infos:  # one by one, so that memory is reused
            info = infos.pop()
            packed_name = info.orig_filename
            if packed_name.endswith("/"):
                continue
            name = plain_name(packed_name)
            if name != packed_name:
                self._packed_names[name] = packed_name
            sizes = info.compress_size, info.file_size
            names.append(name)
            offset = min(max(info.header_offset, -1), _NOWHERE)
            entries.append(_PACKED_ENTRY.pack(offset, *sizes, info.CRC, info.compress_type, info.flag_bits))
        order = sorted(range(len(names)), key=names.__getitem__)
        packed = b"".join(map(entries.__getitem__, order))
        joined = "\0".join(map(names.__getitem__, order))  # no name has a NUL
        del names, entries  # which lie scattered among what zipfile has left; copies lie close together
        return joined.split("\0") if order else [], packed

    def glob(self, pattern: str) -> list[str]:
        matches = pattern_of(pattern).fullmatch
        # Matching names start with the text before the first wildcard, so one folder among many is found at once.
        start = re.split(r"[*?]", pattern, maxsplit=1)[0]
        first = bisect_left(self._names, start)
        last = bisect_right(self._names, start, lo=first, key=lambda name: name[: len(start)])
        return [name for name in self._names[first:last] if matches(name)]

    def open(self, name: str) -> BinaryIO:
        entry = self._member(name)
        if entry.flags & _ENCRYPTED:
            raise PrerequisiteError(f"{self.label_of(name)} is encrypted; get the archive again")
        with archive_errors(self.label_of(name)):
            self._read_header(name, entry)
            stream = self._zip.open(entry.as_zipfile_knows_it(self._packed_names.get(name, name)))
        return cast(BinaryIO, io.BufferedReader(_MemberStream(stream, entry.size, self.label_of(name)), COPY_BYTES))

    def path(self, name: str) -> Path | None:  # noqa: ARG002
        return None

    def exists(self, name: str) -> bool:
        return self._index_of(name) is not None

    def _index_of(self, name: str) -> int | None:
        index = bisect_left(self._names, name)
        return index if self._names[index : index + 1] == [name] else None

    def size(self, name: str) -> int:
        return self._member(name).size

    def facts(self, name: str) -> dict[str, int]:
        entry = self._member(name)
        return {"size": entry.size, "crc32": entry.crc32}

    def time_ns(self, name: str) -> int:  # noqa: ARG002
        return self._time_ns

    def is_extracted(self, name: str, destination: str) -> bool:
        return is_complete(os.lstat(destination), self.size(name), self._time_ns)

    def extract(self, name: str, destination: str, report: Callable[[int], None] = ignore_progress) -> None:
        """Write a member to a new file."""
        entry = self._member(name)
        if os.path.lexists(destination):  # before anything is unpacked: an interrupted attempt may be continued
            raise FileExistsError(destination)
        methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if max(entry.size, entry.packed_size) > WHOLE_BYTES or entry.method not in methods or entry.flags & _ENCRYPTED:
            with self.open(name) as source, create(destination, time_ns=self._time_ns) as target:
                while piece := source.read(COPY_BYTES):
                    report(target.write(piece))
            return
        with archive_errors(self.label_of(name)):
            content = self._read_whole(name, entry)
        create_whole(destination, content, self._time_ns)

    def _member(self, name: str) -> _MemberLocation:
        if (index := self._index_of(name)) is None:
            raise missing(self, name)
        return _MemberLocation(*_PACKED_ENTRY.unpack_from(self._entries, index * _PACKED_ENTRY.size))

    def _read_whole(self, name: str, entry: _MemberLocation) -> bytes:
        """A small member: one read from the archive, one call to unpack it. zipfile takes ten times as long."""
        start, begin = self._read_header(name, entry, entry.packed_size)
        end = begin + entry.packed_size
        if end > len(start):
            start += os.pread(self._file, end - len(start), entry.offset + len(start))
        content = start[begin:end]
        if entry.method == zipfile.ZIP_DEFLATED:
            content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(content, entry.size + 1)
        if len(content) != entry.size or zlib.crc32(content) != entry.crc32:
            raise zipfile.BadZipFile("its content does not match its checksum")
        return content

    def _read_header(self, name: str, entry: _MemberLocation, more: int = 0) -> tuple[bytes, int]:
        """The start of a member, including roughly `more` bytes of content, and where the content begins in it."""
        if not 0 <= entry.offset <= self._bytes - entry.packed_size:
            raise EOFError("it is not inside the archive")
        name = self._packed_names.get(name, name)
        start = os.pread(self._file, _LOCAL_HEADER.size + 4 * len(name) + 64 + more, entry.offset)
        if len(start) < _LOCAL_HEADER.size:
            raise EOFError("the archive is cut off")
        signature, name_length, extra_length = _LOCAL_HEADER.unpack_from(start)
        if signature != b"PK\x03\x04":
            raise zipfile.BadZipFile("a member does not begin where it should")
        header_name = start[_LOCAL_HEADER.size : _LOCAL_HEADER.size + name_length]
        if header_name.decode("utf-8" if entry.flags & _UTF8_NAME else "cp437", "replace") != name:
            raise zipfile.BadZipFile("another member begins where it should")
        return start, _LOCAL_HEADER.size + name_length + extra_length

    def label_of(self, name: str) -> str:
        return f"{self._before}{name}"


class _MemberStream(io.RawIOBase):
    """A member of an archive; damage found while reading is reported as such."""

    def __init__(self, stream: IO[bytes], size: int, label: str):
        self._stream = stream
        self._size = size
        self._label = label

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._stream.seekable()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        with archive_errors(self._label):
            return self._stream.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        with archive_errors(self._label):
            content = self._stream.read(len(buffer))
            if len(buffer) and not content and self._stream.tell() != self._size:
                raise zipfile.BadZipFile("it is shorter than it should be")
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stream.close()
        super().close()
