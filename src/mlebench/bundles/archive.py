"""The archive of a bundle: a gzipped tar file of exactly one form.

Its first member is the manifest, which lists all others in order. The manifest determines every byte of the tar file
except the contents, and those have checksums. So a reader has nothing to interpret: each header is compared with the
only one allowed there. Links, devices, format extensions and whatever else tar files can hold have no way in.
"""

import hashlib
import struct
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from mlebench.core.errors import PrerequisiteError
from mlebench.core.untrusted import printable, shorten

BLOCK = tarfile.BLOCKSIZE
CHUNK = 1 << 20
LARGEST_MEMBER = (8 << 30) - 1  # the most that a header can state
MAGIC = b"\x1f\x8b"
_GZIP = MAGIC + b"\x08\0\0\0\0\0\0\xff"  # no name, no time, no system
_END = bytes(2 * BLOCK)
_KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a named pipe",
    tarfile.DIRTYPE: "a folder",
}


class BundleRefusedError(PrerequisiteError):
    """A file is not a bundle, or not an intact one."""


def header(name: str, size: int) -> bytes:
    """A member's header; ValueError if its name or size does not fit."""
    member = tarfile.TarInfo(name)
    member.size = size
    return member.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict")


def padding(size: int) -> bytes:
    return bytes(-size % BLOCK)


class ArchiveWriter:
    """Writes members one after the other."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self._deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        self._crc = self._size = 0
        file.write(_GZIP)

    def add(self, name: str, size: int, pieces: Iterable[bytes]) -> None:
        self._write(header(name, size))
        for piece in pieces:
            self._write(piece)
        self._write(padding(size))

    def close(self) -> None:
        self._write(_END)
        self._file.write(self._deflate.flush() + struct.pack("<LL", self._crc, self._size & 0xFFFFFFFF))

    def _write(self, data: bytes) -> None:
        self._crc = zlib.crc32(data, self._crc)
        self._size += len(data)
        self._file.write(self._deflate.compress(data))


class ArchiveReader:
    """Reads members one after the other; each must be the expected one."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        self._hash = hashlib.sha256()
        self._crc = self._size = 0
        self._waiting = b""
        if self._fetch(len(_GZIP)) != _GZIP:
            raise BundleRefusedError("it is not a bundle, or another program has packed it again")

    def first(self, name: str, limit: int) -> bytes:
        """The contents of the first member, whose size comes from its own header."""
        block = self._read(BLOCK)
        member = _parsed(block)
        if member.name != name:
            raise BundleRefusedError(f"it does not begin with {name}, but with {printable_name(member.name)}")
        if not 0 <= member.size <= limit:
            raise BundleRefusedError(f"{name} has {member.size} bytes; at most {limit} are read")
        _compare(block, name, member.size)
        return b"".join(self._content(member.size))

    def member(self, name: str, size: int, sha256: str) -> Iterator[bytes]:
        """The contents of the next member, in pieces. Trust none of them until the last has come without an error."""
        _compare(self._read(BLOCK), name, size)
        digest = hashlib.sha256()
        for piece in self._content(size):
            digest.update(piece)
            yield piece
        if digest.hexdigest() != sha256:
            raise BundleRefusedError(f"{printable_name(name)} does not have the sha256 that the manifest states")

    def end(self) -> str:
        """The sha256 of the whole file; refuses anything after the last member."""
        block = self._read(BLOCK)
        if any(block):
            raise BundleRefusedError(f"{printable_name(_parsed(block).name)} is not in the manifest, or is there twice")
        if any(self._read(BLOCK)) or self._inflated(1):
            raise BundleRefusedError("there is data after its end")
        trailer = self._inflate.unused_data + self._fetch(9)
        if not self._inflate.eof or trailer != struct.pack("<LL", self._crc, self._size & 0xFFFFFFFF):
            raise BundleRefusedError("it is cut short, or there is data after its end")
        return self._hash.hexdigest()

    def _content(self, size: int) -> Iterator[bytes]:
        remaining = size
        while remaining:
            piece = self._read(min(remaining, CHUNK))
            remaining -= len(piece)
            yield piece
        if any(self._read(len(padding(size)))):
            raise BundleRefusedError("there is data between its members")

    def _read(self, size: int) -> bytes:
        data = self._inflated(size)
        if len(data) < size:
            raise BundleRefusedError("it is cut short")
        self._crc = zlib.crc32(data, self._crc)
        self._size += size
        return data

    def _inflated(self, size: int) -> bytes:
        """`size` bytes, or fewer at the end. Never more, so an archive cannot swell beyond what was asked for."""
        pieces = []
        while size and not self._inflate.eof:
            packed = self._waiting or self._fetch(1 << 16)
            try:
                piece = self._inflate.decompress(packed, size)
            except zlib.error:
                raise BundleRefusedError("it is damaged: its compression is broken") from None
            self._waiting = self._inflate.unconsumed_tail
            if not packed and not piece:
                break
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _fetch(self, size: int) -> bytes:
        data = self._file.read(size)
        self._hash.update(data)
        return data


def _compare(block: bytes, name: str, size: int) -> None:
    if block == header(name, size):
        return
    if not any(block):
        raise BundleRefusedError(f"{printable_name(name)} is in the manifest but not in the archive")
    member = _parsed(block)
    if member.name != name:
        raise BundleRefusedError(f"{printable_name(member.name)} is where the manifest has {printable_name(name)}")
    if member.size != size:
        raise BundleRefusedError(f"{printable_name(name)} has {member.size} bytes; the manifest states {size}")
    raise BundleRefusedError(f"the header of {printable_name(name)} is not as mlebench writes it")


def _parsed(block: bytes) -> tarfile.TarInfo:
    """What a header says, for a message; refuses anything but a regular file."""
    try:
        member = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
    except (tarfile.TarError, ValueError):
        raise BundleRefusedError("it is damaged: there is no member where one should begin") from None
    if member.type != tarfile.REGTYPE:
        kind = _KINDS.get(member.type, "of a kind that bundles do not have")
        raise BundleRefusedError(f"{printable_name(member.name)} is {kind}; a bundle holds only regular files")
    return member


def printable_name(name: str) -> str:
    """A stranger's name, on one line of a terminal."""
    return printable(shorten(name, 120))
