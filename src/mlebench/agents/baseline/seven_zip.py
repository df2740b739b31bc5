"""Reads a 7z archive of one file, with only the standard library.

It may be stored, or packed with deflate, bzip2, LZMA, or LZMA2 with or without the x86 filter: the methods that writers
of such small archives use. Anything else is refused.

An archive is a header of 32 bytes, packed streams, and a list of what they are at the end, which may be packed itself.
"""

import bz2
import io
import lzma
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

END, HEADER, STREAMS, PACKED, CODERS, PARTS, SIZES, DIGESTS, FOLDER, UNPACKED, PACKED_HEADER = (
    0, 1, 4, 6, 7, 8, 9, 10, 11, 12, 23,
)  # fmt: skip
COPY, DEFLATE, BZIP2, LZMA, LZMA2 = b"\0", b"\x04\x01\x08", b"\x04\x02\x02", b"\x03\x01\x01", b"\x21"
X86 = (b"\x03\x03\x01\x03", b"\x04")


class Coder(NamedTuple):
    method: bytes
    properties: bytes


class Stream(NamedTuple):
    """Some packed bytes, how they were packed, and the size and checksum of what they unpack to."""

    packed: bytes
    coders: list[Coder]
    size: int
    checksum: int | None

    def content(self) -> bytes:
        content = _unpack(self.packed, self.coders, self.size)[: self.size]
        if len(content) != self.size or (self.checksum is not None and zlib.crc32(content) != self.checksum):
            raise ValueError("the 7z archive is damaged")
        return content


def read_only_member(path: Path) -> bytes:
    archive = path.read_bytes()
    if archive[:6] != b"7z\xbc\xaf\x27\x1c":
        raise ValueError(f"{path.name} is not a 7z archive")
    offset, size, checksum = struct.unpack("<QQI", archive[12:32])
    listing = archive[32 + offset : 32 + offset + size]
    if zlib.crc32(listing) != checksum:
        raise ValueError("the 7z archive is damaged")
    while listing[0] == PACKED_HEADER:
        listing = _Reader(archive, listing[1:]).stream().content()
    if listing[:2] != bytes([HEADER, STREAMS]):
        raise ValueError(f"{path.name} holds no file, or has properties that are not supported")
    return _Reader(archive, listing[2:]).stream().content()


class _Reader:
    """Reads the list of streams, which must hold exactly one."""

    def __init__(self, archive: bytes, listing: bytes):
        self._archive = archive
        self._listing = io.BytesIO(listing)

    def _byte(self) -> int:
        return self._listing.read(1)[0]

    def _number(self) -> int:
        """The leading ones of the first byte say how many bytes follow; its other bits are the high bits."""
        first = self._byte()
        more = next(count for count in range(9) if count == 8 or not first & (0x80 >> count))
        return int.from_bytes(self._listing.read(more), "little") + ((first & (0x7F >> more)) << 8 * more)

    def _one(self, what: str) -> None:
        if (count := self._number()) != 1:
            raise ValueError(f"the 7z archive has {count} {what}; one is supported")

    def _expect(self, *kinds: int) -> int:
        if (kind := self._byte()) not in kinds:
            raise ValueError(f"the 7z archive has an entry of kind {kind}, which is not supported")
        return kind

    def stream(self) -> Stream:
        self._expect(PACKED)
        offset = 32 + self._number()
        self._one("packed streams")
        self._expect(SIZES)
        packed = self._archive[offset : offset + self._number()]
        if self._expect(DIGESTS, END) == DIGESTS:
            self._checksum()
            self._expect(END)
        self._expect(CODERS)
        self._expect(FOLDER)
        self._one("folders")
        self._expect(0)  # what follows is not stored elsewhere
        coders, is_reversed = self._coders()
        self._expect(UNPACKED)
        sizes = [self._number() for _ in coders]
        if is_reversed:
            coders, sizes = coders[::-1], sizes[::-1]
        checksum = None
        if self._expect(DIGESTS, END) == DIGESTS:
            checksum = self._checksum()
            self._expect(END)
        return Stream(packed, coders, sizes[0], self._checksum_of_part() if checksum is None else checksum)

    def _coders(self) -> tuple[list[Coder], bool]:
        """How it was packed: each coder's output is the next one's input. Some writers list them in reverse."""
        coders = []
        for _ in range(self._number()):
            flags = self._byte()
            if flags & 0x10:
                raise ValueError("the 7z archive was packed in branches, which is not supported")
            method = self._listing.read(flags & 0x0F)
            coders.append(Coder(method, self._listing.read(self._number()) if flags & 0x20 else b""))
        bonds = [(self._number(), self._number()) for _ in coders[1:]]
        forward = [(number, number + 1) for number in range(len(bonds))]
        is_reversed = bonds == [(later, earlier) for earlier, later in forward] and bonds != forward
        if bonds != forward and not is_reversed:
            raise ValueError("the 7z archive was packed in an unusual order, which is not supported")
        return coders, is_reversed

    def _checksum(self) -> int | None:
        return struct.unpack("<I", self._listing.read(4))[0] if self._byte() else None

    def _checksum_of_part(self) -> int | None:
        """A stream may hold many files, one after the other; this one must hold one."""
        if self._byte() != PARTS:
            return None
        kind = self._byte()
        if kind == 13:  # how many files
            self._one("files")
            kind = self._byte()
        return self._checksum() if kind == DIGESTS else None


def _unpack(packed: bytes, coders: list[Coder], size: int) -> bytes:
    match [coder.method for coder in coders]:
        case [method] if method == COPY:
            return packed
        case [method] if method == DEFLATE:
            return zlib.decompressobj(-15).decompress(packed, size)
        case [method] if method == BZIP2:
            return bz2.BZ2Decompressor().decompress(packed, size)
        case [method] if method == LZMA:
            return _lzma([_lzma_filter(coders[0].properties)], packed, size)
        case [*before, method] if method == LZMA2 and all(other in X86 for other in before):
            x86 = [{"id": lzma.FILTER_X86} for _ in before]
            return _lzma([*x86, _lzma2_filter(coders[-1].properties)], packed, size)
    raise ValueError("the 7z archive was packed in a way that is not supported")


def _lzma(filters: list[dict[str, int]], packed: bytes, size: int) -> bytes:
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters).decompress(packed, size)


def _lzma_filter(properties: bytes) -> dict[str, int]:
    rest, lc = divmod(properties[0], 9)
    pb, lp = divmod(rest, 5)
    return {"id": lzma.FILTER_LZMA1, "lc": lc, "lp": lp, "pb": pb, "dict_size": struct.unpack("<I", properties[1:5])[0]}


def _lzma2_filter(properties: bytes) -> dict[str, int]:
    bits = properties[0]
    return {"id": lzma.FILTER_LZMA2, "dict_size": min((2 | bits & 1) << (bits // 2 + 11), 0xFFFFFFFF)}
