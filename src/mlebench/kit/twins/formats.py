"""Tables, records and archives for twins, as bytes; and the contents of their cells."""

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import numpy as np

from mlebench.core.errors import CompetitionError
from mlebench.engine.archives.write_archive import ZIP_TIME
from mlebench.engine.csv.printing import CsvStyle, bytes_of, header_line, join_cells, print_as_they_are

PRINTED_ROWS = 1 << 14  # at a time


def csv_bytes(columns: Mapping[str, Any], *, sep: str = ",", newline: str = "\n", quote_text: bool = False) -> bytes:
    """Columns as CSV. Strings are written as they are, so a cell may be `007`, `1e-05` or `NA`; None is empty."""
    return b"".join(csv_pieces([columns], sep=sep, newline=newline, quote_text=quote_text))


def csv_pieces(
    parts: Iterable[Mapping[str, Any]], *, sep: str = ",", newline: str = "\n", quote_text: bool = False
) -> Iterator[bytes]:
    """Yield the CSV bytes of a table that comes in parts: some rows of all columns at a time."""
    style = CsvStyle(quote_text, sep=sep, newline=newline)
    for number, columns in enumerate(parts):
        header = header_line(columns, style) if number == 0 else b""
        yield header + _rows(columns, style)


def _rows(columns: Mapping[str, Any], style: CsvStyle) -> bytes:
    plain = [_plain(values) for values in columns.values()]
    rows = len(plain[0])
    if any(len(values) != rows for values in plain):
        lengths = ", ".join(f"{name} has {len(values)}" for name, values in zip(columns, plain, strict=True))
        raise CompetitionError(f"one column is shorter than another: {lengths}")
    pieces = []
    for start in range(0, rows, PRINTED_ROWS):
        cells = [print_as_they_are(values[start : start + PRINTED_ROWS], style) for values in plain]
        pieces.append(bytes(bytes_of(join_cells(cells, style))))
    return b"".join(pieces)


def zip_bytes(members: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    write_zip(stream, {name: [content] for name, content in members.items()})
    return stream.getvalue()


def write_zip(stream: IO[bytes], members: Mapping[str, Iterable[bytes]]) -> None:
    """A zip of members that come in pieces. A single piece is written like a small member, with a short header."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, pieces in members.items():
            info = zipfile.ZipInfo(name, ZIP_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            pieces = iter(pieces)
            first, second = next(pieces, b""), next(pieces, None)
            info.file_size = len(first)
            with archive.open(info, "w", force_zip64=second is not None) as member:
                member.write(first)
                for piece in chain([second or b""], pieces):
                    member.write(piece)


def pieces_of(count: int, most: int) -> list[int]:
    """Split a count into about equal parts of at most `most`; a small count stays whole."""
    parts = max(1, -(-count // most))
    return [count * (part + 1) // parts - count * part // parts for part in range(parts)]


def tar_gz_bytes(members: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(mode="w", fileobj=stream) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    compressed = io.BytesIO()
    # Not `gzip.compress`: its header differs between Python versions.
    with gzip.GzipFile("", "wb", compresslevel=1, fileobj=compressed, mtime=0) as target:
        target.write(stream.getvalue())
    return compressed.getvalue()


def seven_zip_bytes(members: Mapping[str, bytes]) -> bytes:
    """A 7z archive; the same members in the same order always give the same bytes."""
    from mlebench.engine.archives.write_archive import write_seven_zip

    with TemporaryDirectory() as folder:
        archive = Path(folder, "archive")
        streams = ((name, lambda content=content: io.BytesIO(content)) for name, content in members.items())
        write_seven_zip(archive, streams, Path(folder), deflate=True)
        return archive.read_bytes()


def records_of(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of these columns as records."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*map(_plain, columns.values()), strict=True)]


def json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8")


def json_lines_bytes(records: Sequence[Mapping[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in records).encode("utf-8")


def bson_bytes(records: Sequence[Mapping[str, Any]]) -> bytes:
    from mlebench.engine.records.bson import encode_document

    return b"".join(map(encode_document, records))


def parquet_bytes(columns: Mapping[str, Any]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), stream)
    return stream.getvalue()


def npy_bytes(values: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def hex_ids(rng: np.random.RandomState, count: int, digits: int) -> list[str]:
    """Distinct hexadecimal ids in random order. Some read like numbers: `0451790263`, `12e4567890`."""
    drawn = rng.choice(list("0123456789abcdef"), (2 * count, digits)).view(f"U{digits}").ravel()
    return rng.permutation(np.unique(drawn))[:count].tolist()


def random_hex(rng: np.random.RandomState, count: int, digits: int) -> list[str]:
    """Hexadecimal texts; `digits` must be even. Unlike `hex_ids`, two may be equal."""
    drawn = rng.bytes(count * digits // 2).hex()
    return [drawn[start : start + digits] for start in range(0, len(drawn), digits)]


def joined(words: Sequence[str] | np.ndarray, lengths: np.ndarray, sep: str = " ") -> list[str]:
    """The words, in order, joined into texts of `lengths` words each."""
    plain, stops = _plain(words), np.cumsum(lengths)
    return [sep.join(plain[start:stop]) for start, stop in zip(stops - lengths, stops, strict=True)]


def rounded(values: np.ndarray, decimals: int = 6) -> np.ndarray:
    return np.round(values, decimals)


def _plain(values: Sequence[Any] | np.ndarray) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)
