"""Where a twin is made."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mlebench.core.authors import checked
from mlebench.engine.trees import check_name
from mlebench.kit.twins.formats import csv_bytes, write_zip


class TwinFolder:
    """Where a twin's raw files go. `size` scales rows and files; 1 fits a laptop and a test suite."""

    def __init__(self, folder: Path, *, seed: int = 0, size: float = 1.0):
        self._folder = folder
        self.rng = np.random.RandomState(seed)
        self.size = size
        self.scaled: dict[int, int] = {}

    @checked
    def count(self, count: int, *, least: int = 2) -> int:
        """How many rows or files to make where a twin of size 1 has `count`."""
        return max(least, round(count * self.size))

    @checked
    def set_scaled(self, real: int, scaled: int) -> None:
        """Say which size of this twin stands for an absolute one of the real data (`raw.scaled`)."""
        self.scaled[real] = scaled

    @checked
    def write(self, name: str, content: bytes) -> None:
        self._path(name).write_bytes(content)

    @checked
    def write_csv(self, name: str, columns: Mapping[str, Any], **style: Any) -> None:
        self.write(name, csv_bytes(columns, **style))

    @checked
    def append_csv(self, name: str, columns: Mapping[str, Any]) -> None:
        """Append rows to a table that need not fit into memory; the first call writes the header."""
        content, header = csv_bytes(columns), csv_bytes(dict.fromkeys(columns, ()))
        with self._path(name).open("ab") as stream:
            stream.write(content.removeprefix(header) if stream.tell() else content)

    @checked
    def write_zipped_csv(self, name: str, columns: Mapping[str, Any], **style: Any) -> None:
        """A CSV file alone in a zip of the same name."""
        self.write_zip(f"{name}.zip", {name: csv_bytes(columns, **style)})

    @checked
    def write_zip(self, name: str, members: Mapping[str, bytes | Iterable[bytes]]) -> None:
        """A zip of members, which may come in pieces and need not fit into memory."""
        with self._path(name).open("wb") as stream:
            write_zip(stream, {name: [part] if isinstance(part, bytes) else part for name, part in members.items()})

    def _path(self, name: str) -> Path:
        check_name(name)
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path
