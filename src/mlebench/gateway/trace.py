"""A line of JSON for each call, written during the run. Cuts are marked, omitted calls counted."""

import contextlib
import json
import os
from io import FileIO
from pathlib import Path
from typing import Any

from mlebench.core.secrets import hiding

LINE = 1 << 20  # bytes of a request or an answer
FILE = 1 << 30  # bytes of the whole trace
LINES = 1_000_000


class Trace:
    def __init__(self, path: Path, *, line: int = LINE, file: int = FILE, hide: str | None = None):
        self._path = path
        self._file: FileIO | None = None
        self._open()
        self._line, self._room, self._lines = line, file, LINES
        self._hide = hiding(hide)  # an endpoint may repeat the key in an error
        self.cut = 0  # calls whose request or answer was shortened
        self.left_out = 0  # calls that are missing

    def write(self, call: dict[str, Any]) -> None:
        request, answer = (shortened(call[name], self._line) for name in ("request", "answer"))
        self.cut += (request, answer) != (call["request"], call["answer"])
        line = self._encode(call | {"request": request, "answer": answer})
        if len(line) > self._room:
            line = self._encode(call | {"request": None, "answer": None, "cut": True})
        if len(line) > self._room or not self._lines:
            self.left_out += 1
            return
        if not self._append(line):
            self.left_out += 1
            return
        self._room -= len(line)
        self._lines -= 1

    def _append(self, line: bytes) -> bool:
        """Whether a whole line was written: a full disk must neither end the run nor leave half a line."""
        file = self._file or self._open()
        if file is None:
            return False
        end = file.seek(0, os.SEEK_END)
        try:
            if file.write(line) == len(line):
                return True
        except OSError:
            pass
        with contextlib.suppress(OSError):
            file.truncate(end)
        return False

    def _open(self) -> FileIO | None:
        with contextlib.suppress(OSError):  # the disk may take it later
            self._file = self._path.open("ab", buffering=0)
        return self._file

    def _encode(self, call: dict[str, Any]) -> bytes:
        return self._hide(json.dumps(call, separators=(",", ":"))).encode() + b"\n"

    def close(self) -> None:
        if self._file:
            self._file.close()


def shortened(value: Any, limit: int) -> Any:
    """The value, if its JSON has at most `limit` bytes; else with long texts cut in the middle, more and more."""
    if value is None or len(text := json.dumps(value)) <= limit:
        return value
    for longest in (limit // 10, limit // 100, limit // 1000):
        cut = _cut(value, longest)
        if len(json.dumps(cut)) <= limit:
            return cut
    return {"cut": len(text), "beginning": text[: limit // 8]}


def _cut(value: Any, longest: int) -> Any:
    match value:
        case str() if len(value) > longest:
            half = longest // 2
            return f"{value[:half]} … [{len(value) - 2 * half} characters cut] … {value[-half:] if half else ''}"
        case dict():
            return {key: _cut(item, longest) for key, item in value.items()}
        case list():
            return [_cut(item, longest) for item in value]
    return value
