"""Twins: tiny synthetic raw data in a competition's exact layout.

A competition's `twin(raw)` fills a `TwinFolder`. Randomness comes from its `rng` alone, and floats are rounded to six
decimals, so that a twin is the same on every machine.
"""

import csv
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mlebench.kit.files import ZIP_TIME


class TwinFolder:
    """Where a twin's raw files go. `size` scales rows and files; 1 fits a laptop and a test suite."""

    def __init__(self, folder: Path, *, seed: int = 0, size: float = 1.0):
        self._folder = folder
        self.rng = np.random.RandomState(seed)
        self.size = size
        self.scaled: dict[int, int] = {}

    def count(self, count: int, *, least: int = 2) -> int:
        """How many rows or files to make where a twin of size 1 has `count`."""
        return max(least, round(count * self.size))

    def stands_for(self, real: int, here: int) -> None:
        """Say which size of this twin stands for an absolute one of the real data (`raw.scaled`)."""
        self.scaled[real] = here

    def write(self, name: str, content: bytes) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def write_csv(self, name: str, columns: Mapping[str, Any], **style: Any) -> None:
        self.write(name, csv_bytes(columns, **style))

    def write_zip(self, name: str, members: Mapping[str, bytes]) -> None:
        self.write(name, zip_bytes(members))


def csv_bytes(columns: Mapping[str, Any], *, sep: str = ",", newline: str = "\n", quote_text: bool = False) -> bytes:
    """Columns as CSV. Strings stand as they are, so a cell may be `007`, `1e-05` or `NA`; None is empty."""
    text = io.StringIO()
    quoting = csv.QUOTE_NONNUMERIC if quote_text else csv.QUOTE_MINIMAL
    writer = csv.writer(text, delimiter=sep, lineterminator=newline, quoting=quoting)
    writer.writerow(columns)
    writer.writerows(zip(*(_plain(values) for values in columns.values()), strict=True))
    return text.getvalue().encode("utf-8")


def zip_bytes(members: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, ZIP_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
    return stream.getvalue()


def json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8")


def json_lines_bytes(records: Sequence[Mapping[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in records).encode("utf-8")


def bson_bytes(records: Sequence[Mapping[str, Any]]) -> bytes:
    from mlebench.kit.bson import encode_document

    return b"".join(map(encode_document, records))


def parquet_bytes(columns: Mapping[str, Any]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), stream)
    return stream.getvalue()


def image_bytes(pixels: np.ndarray, format: str) -> bytes:
    """An image file of 8-bit pixels, grey (height, width) or RGB (height, width, 3)."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(stream, format=format)
    return stream.getvalue()


def rounded(values: np.ndarray, decimals: int = 6) -> np.ndarray:
    return np.round(values, decimals)


def _plain(values: Sequence[Any] | np.ndarray) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)
