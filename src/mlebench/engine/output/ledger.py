"""Which files are completely written, with their md5, so that they are not written again after an interruption."""

import json
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    size: int
    md5: str


class Ledger:
    """A file with a line for each finished file; a line cut off by an interruption does not count."""

    def __init__(self, path: Path):
        self._path = path
        self.known: dict[str, Entry] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            try:
                name, size, md5 = json.loads(line)
            except ValueError:
                continue
            self.known[name] = Entry(size, md5)

    def add(self, name: str, size: int, md5: str) -> None:
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(f"\n{json.dumps([name, size, md5])}\n")  # the line before may be one that was cut off
