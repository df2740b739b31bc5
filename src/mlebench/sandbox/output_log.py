"""What a sandbox prints, kept up to a limit. Part of the supervisor: standard library only."""

import contextlib
import os
from pathlib import Path


class OutputLog:
    """The output of a program: keeps what fits, and the end of the rest."""

    TAIL = 1 << 20

    def __init__(self, path: Path, limit: int):
        self._file = path.open("wb", buffering=0)
        self._room = limit
        self._tail = bytearray()
        self._dropped = 0
        self._end = b""

    def take(self, pipe: int) -> bool:
        """Keep what has arrived; False if no more can come."""
        for _ in range(64):
            try:
                data = os.read(pipe, 1 << 16)
            except BlockingIOError:
                return True
            if not data:
                return False
            fitting, overflow = data[: self._room], data[self._room :]
            self._room -= len(fitting)
            self._end = data[-500:]
            with contextlib.suppress(OSError):  # a full disk must not end the run
                self._file.write(fitting)
            if overflow:
                self._dropped += len(overflow)
                self._tail += overflow
                if len(self._tail) > 2 * self.TAIL:
                    del self._tail[: -self.TAIL]
        return True

    def last_line(self) -> str:
        return bytes(self._end).decode(errors="replace").strip().rpartition("\n")[2]

    def finish(self) -> int:
        """Write the end, if something before it was left out; return how many bytes were."""
        tail = self._tail[-self.TAIL :]
        dropped = self._dropped - len(tail)
        with contextlib.suppress(OSError):
            if dropped > 0:
                self._file.write(b"\n[... %d bytes of output were left out here ...]\n" % dropped)
            self._file.write(tail)
        self._file.close()
        return max(dropped, 0)
