"""Large texts: read in blocks of lines, written in pieces that are made when they are needed."""

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

LINES_BYTES = 4 << 20  # read at a time


@dataclass(frozen=True)
class ByteChunks:
    """Bytes that are made piece by piece while they are written, since together they do not fit into memory.

    `make` is called when writing starts, and again if it has to start over. Their size may be known beforehand.
    """

    make: Callable[[], Iterable[bytes]]
    known_size: int | None = None

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.make())

    def open(self) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(_ChunkStream(iter(self))))

    @property
    def size(self) -> int:
        if self.known_size is not None:
            return self.known_size
        raise ValueError("the size of pieces is not known beforehand, and a tar needs it")


class _ChunkStream(io.RawIOBase):
    def __init__(self, pieces: Iterator[bytes]):
        self._pieces = pieces
        self._remaining = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._remaining:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._remaining = memoryview(piece)
        size = min(len(buffer), len(self._remaining))
        buffer[:size] = self._remaining[:size]
        self._remaining = self._remaining[size:]
        return size


def line_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """A text, some lines at a time. Lines that end with \\r or \\r\\n then end with \\n, as when Python reads text.

    The last line has an end only if it has one in the file.
    """
    incomplete = b""
    while fresh := stream.read(LINES_BYTES):
        end = fresh.rfind(b"\n") + 1
        if end:
            yield _with_plain_ends(incomplete + fresh[:end])
            incomplete = fresh[end:]
        else:
            incomplete += fresh
    if incomplete:
        yield _with_plain_ends(incomplete)


def _with_plain_ends(lines: bytes) -> bytes:
    return lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in lines else lines
