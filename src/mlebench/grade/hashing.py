"""The hash of a submission is that of the bytes that were graded, even if the file changes meanwhile."""

import hashlib
import io
from typing import BinaryIO

from mlebench.core.untrusted import FileTooLargeError

_CHUNK = 1 << 20


class HashedStream(io.BufferedIOBase):
    """Hashes a stream while it is read; one that grows beyond the limit is not read to the end."""

    def __init__(self, stream: BinaryIO, limit: int):
        self._stream = stream
        self._limit = limit
        self._size = 0
        self._ended = False
        self._hash = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        left = self._limit + 1 - self._size
        wanted = left if size is None or size < 0 else min(size, left)
        data = b"" if self._ended else self._stream.read(wanted)
        self._ended = self._ended or len(data) < wanted  # bytes appended from now on do not count
        self._size += len(data)
        if self._size > self._limit:
            raise FileTooLargeError(f"has more than {self._limit} bytes, the most that are read")
        self._hash.update(data)
        return data

    def read1(self, size: int = -1, /) -> bytes:
        return self.read(_CHUNK if size < 0 else size)

    def sha256(self) -> str:
        """The hash of the whole stream; the unread rest is read now."""
        while self.read(_CHUNK):
            pass
        return self._hash.hexdigest()
