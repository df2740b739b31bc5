"""Twins: tiny synthetic raw data in a competition's exact layout.

A competition's `twin(raw)` fills a `TwinFolder`. Randomness comes from its `rng` alone, and floats are rounded to six
decimals, so that a twin is the same on every machine.
"""

import csv
import gzip
import io
import json
import struct
import tarfile
import wave
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
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

    def write_zipped_csv(self, name: str, columns: Mapping[str, Any], **style: Any) -> None:
        """A CSV file alone in a zip, which is named like it."""
        self.write_zip(f"{name}.zip", {name: csv_bytes(columns, **style)})

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


def tar_gz_bytes(members: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(mode="w", fileobj=stream) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(stream.getvalue(), compresslevel=1, mtime=0)


def seven_zip_bytes(members: Mapping[str, bytes]) -> bytes:
    """A 7z archive; the same members in the same order always give the same bytes."""
    from mlebench.kit.seven_zip import write_seven_zip

    with TemporaryDirectory() as folder:
        archive = Path(folder, "archive")
        streams = ((name, lambda content=content: io.BytesIO(content)) for name, content in members.items())
        write_seven_zip(archive, streams, Path(folder), deflate=True)
        return archive.read_bytes()


def records_of(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of columns, each a record."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*map(_plain, columns.values()), strict=True)]


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
    """An image file: of 8-bit pixels, grey (height, width) or RGB (height, width, 3), or of uint16 grey ones."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(pixels if pixels.dtype == np.uint16 else pixels.astype(np.uint8)).save(stream, format=format)
    return stream.getvalue()


def npy_bytes(values: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def wav_bytes(samples: np.ndarray, rate: int) -> bytes:
    """A sound of one channel: whole numbers of 16 bits, so many a second."""
    stream = io.BytesIO()
    with wave.open(stream, "wb") as sound:
        sound.setparams((1, 2, rate, len(samples), "NONE", ""))
        sound.writeframes(samples.astype("<i2").tobytes())
    return stream.getvalue()


def aiff_bytes(samples: np.ndarray, rate: int) -> bytes:
    """The same as `wav_bytes`, in the format that comes from other computers: the high byte of a number first."""
    power = rate.bit_length() - 1  # the rate is a float of 80 bits: an exponent, and a fraction that begins with a one
    common = struct.pack(">hIhHQ", 1, len(samples), 16, 16383 + power, rate << 63 - power)
    sound = bytes(8) + samples.astype(">i2").tobytes()
    return _chunk(b"FORM", b"AIFF", _chunk(b"COMM", common), _chunk(b"SSND", sound))


def _chunk(kind: bytes, *parts: bytes) -> bytes:
    """What AIFF files are made of: a name, a length, and so many bytes."""
    content = b"".join(parts)
    return struct.pack(">4sI", kind, len(content)) + content


def hex_ids(rng: np.random.RandomState, count: int, digits: int) -> list[str]:
    """Different ids of so many hexadecimal digits, in no order. Some read like numbers: `0451790263`, `12e4567890`."""
    drawn = rng.choice(list("0123456789abcdef"), (2 * count, digits)).view(f"U{digits}").ravel()
    return rng.permutation(np.unique(drawn))[:count].tolist()


def mp4_bytes(frames: Sequence[bytes], *, width: int, height: int) -> bytes:
    """A video whose frames are JPEG images, shown one a second: no file that players accept is much simpler."""
    count, matrix = len(frames), struct.pack(">9I", 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)  # not turned
    kind = _box(b"ftyp", b"isom", bytes(4), b"isom")
    sample = struct.pack(">6xH16xHHII4xH32xHH", 1, width, height, 72 << 16, 72 << 16, 1, 24, 0xFFFF)
    samples = _box(
        b"stbl",
        _box(b"stsd", struct.pack(">4xI", 1), _box(b"jpeg", sample)),
        _box(b"stts", struct.pack(">4xIII", 1, count, 1)),
        _box(b"stsc", struct.pack(">4xIIII", 1, 1, count, 1)),
        _box(b"stsz", struct.pack(f">8xI{count}I", count, *map(len, frames))),
        _box(b"stco", struct.pack(">4xII", 1, len(kind) + 8)),
    )
    here = _box(b"dinf", _box(b"dref", struct.pack(">4xI", 1), _box(b"url ", struct.pack(">I", 1))))
    media = _box(
        b"mdia",
        _box(b"mdhd", struct.pack(">12xIIHxx", 1, count, 0x55C4)),
        _box(b"hdlr", struct.pack(">8x4s13x", b"vide")),
        _box(b"minf", _box(b"vmhd", struct.pack(">I8x", 1)), here, samples),
    )
    size = struct.pack(">II", width << 16, height << 16)
    header = _box(b"tkhd", struct.pack(">I8xI4xI16x", 7, 1, count), matrix, size)
    movie = _box(b"mvhd", struct.pack(">12xIIIH10x", 1, count, 1 << 16, 1 << 8), matrix, struct.pack(">24xI", 2))
    return kind + _box(b"mdat", *frames) + _box(b"moov", movie, _box(b"trak", header, media))


def _box(kind: bytes, *parts: bytes) -> bytes:
    content = b"".join(parts)
    return struct.pack(">I4s", len(content) + 8, kind) + content


def rounded(values: np.ndarray, decimals: int = 6) -> np.ndarray:
    return np.round(values, decimals)


def _plain(values: Sequence[Any] | np.ndarray) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)
