"""Large texts: read in blocks of lines, written in pieces that are made when they are needed."""

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

LINES_BYTES = 4 << 20  # read at a time


@dataclass(frozen=True)
class Pieces:
    """Bytes that are made piece by piece while they are written, since together they do not fit into memory.

    `make` is called when writing starts, and again if it has to start over. Their size may be known beforehand.
    """

    make: Callable[[], Iterable[bytes]]
    known_size: int | None = None

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.make())

    def open(self) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(_PieceStream(iter(self))))

    @property
    def size(self) -> int:
        if self.known_size is not None:
            return self.known_size
        raise ValueError("the size of pieces is not known beforehand, and a tar needs it")


class _PieceStream(io.RawIOBase):
    def __init__(self, pieces: Iterator[bytes]):
        self._pieces = pieces
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size


def line_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """A text, some lines at a time. Lines that end with \\r or \\r\\n then end with \\n, as when Python reads text.

    The last line has an end only if it has one in the file.
    """
    left = b""
    while fresh := stream.read(LINES_BYTES):
        end = fresh.rfind(b"\n") + 1
        if end:
            yield _with_plain_ends(left + fresh[:end])
            left = fresh[end:]
        else:
            left += fresh
    if left:
        yield _with_plain_ends(left)


def _with_plain_ends(lines: bytes) -> bytes:
    return lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in lines else lines
