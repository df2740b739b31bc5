"""JSON lines as pandas reads and prints them: `read_json(lines=True)`, then `to_json(orient="records", lines=True)`.

pandas types whole columns, so records are read in the same blocks as pandas would read. Most blocks hold nothing that
its typing could change (no floats, no texts that are numbers, the same fields everywhere): these go through Python's
own parser, which is quicker. The rest go through pandas.
"""

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa

from mlebench.engine.frames import as_values, text_as_objects, values_of
from mlebench.engine.records.source import RECORDS, RecordSource
from mlebench.engine.tables import STREAM_BYTES, Stored, Table, Writable

_INT64 = range(-(1 << 63), 1 << 63)
_READABLE = range(-(1 << 63), 1 << 64)  # inside a record; a column of numbers above 63 bits has another type
_ODD_ESCAPE = re.compile(rb"\\u(?:007[fF]|[dD][89a-fA-F])")  # not escaped by pandas, and surrogates
_PAIR = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..")  # a surrogate pair: one character
_ODD_LETTER = re.compile("[\x7f\ud800-\udfff]")  # the same, in a text
_DATE_NAME = re.compile(r".*(_at|_time)|timestamp.*|modified|date|datetime", re.DOTALL | re.IGNORECASE)
_print = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class _NotPlainError(Exception):
    """Something that only pandas can decide."""


def _refuse(text: str) -> Any:
    raise _NotPlainError(text)


def _whole_number(text: str) -> int:
    number = int(text)
    if text == "-0" or (len(text) > 18 and number not in _READABLE):
        raise _NotPlainError(text)
    return number


_parse = json.JSONDecoder(parse_float=_refuse, parse_constant=_refuse, parse_int=_whole_number).decode


class JsonLinesSource(RecordSource):
    """A file of JSON lines that pandas reads `chunk_lines` at a time, or whole."""

    def __init__(self, open_file: Callable[[], BinaryIO], size: int, chunk_lines: int | None = None):
        super().__init__(open_file, size)
        self._chunk_lines = chunk_lines
        self._columns: list[str] | None = None
        self._kept: list[_Lines] = []  # all blocks, parsed once, of a file that is typed whole or is small

    @property
    def columns(self) -> list[str]:
        if self._columns is None:
            blocks = list(self.blocks()) if self.size < STREAM_BYTES else self.blocks()
            self._columns = next((block.columns for block in blocks), [])
        return self._columns

    def block_rows(self) -> Iterator[int]:
        for lines in self._chunks():
            yield len(lines)

    def blocks(self) -> Iterator["_Lines"]:
        if self._kept:
            yield from self._kept
            return
        kept, columns = [], None
        for lines in self._chunks():
            block = _Lines(lines, sum(map(len, lines)))
            columns = columns or block.columns
            if block.columns != columns:
                raise ValueError(f"records with the fields {block.columns} come after some with {columns}")
            if self._chunk_lines is None or self.size < STREAM_BYTES:
                kept.append(block)
            yield block
        self._kept = kept

    def forget(self) -> None:
        super().forget()
        self._kept = []

    def _chunks(self) -> Iterator[list[bytes]]:
        with self.open() as stream:
            source = stream if self._chunk_lines is None else _universal_lines(stream)
            while lines := list(islice(source, self._chunk_lines)):
                if records := [line for line in lines if not line.isspace()]:
                    yield records


def _universal_lines(stream: Iterable[bytes]) -> Iterator[bytes]:
    """Lines as pandas counts them when it reads some at a time: a carriage return alone ends one too."""
    for line in stream:
        yield from line.splitlines(keepends=True) if b"\r" in line else [line]


class _Lines:
    """Some lines; parsed in the quick way where that is safe, else by pandas."""

    def __init__(self, lines: list[bytes], size: int):
        self._lines = lines
        self.size = size

    @cached_property
    def _plain(self) -> list[dict[str, Any]] | None:
        try:
            return _parse_plain(self._lines)
        except (_NotPlainError, ValueError):
            return None

    @cached_property
    def _frame(self) -> pd.DataFrame:
        text = io.StringIO(b"\n".join(self._lines).decode("utf-8"))
        frame = text_as_objects(pd.read_json(text, orient="records", lines=True))
        if dates := [str(name) for name, kind in frame.dtypes.items() if kind.kind in "mM"]:
            raise ValueError(f"pandas takes {', '.join(dates)} for dates, which its versions print differently")
        if not all(isinstance(name, str) for name in frame.columns):
            raise ValueError("pandas takes the names of these fields for numbers or dates")
        return frame

    @property
    def columns(self) -> list[str]:
        return list(self._plain[0] if self._plain else self._frame.columns)

    def values(self, name: str, rows: np.ndarray) -> np.ndarray:
        if self._plain is None:
            return values_of(self._frame[name])[rows]
        return as_values([self._plain[row][name] for row in rows.tolist()])

    def whole_numbers(self) -> Mapping[str, np.ndarray]:
        if self._plain is None:
            return {name: self._frame[name].to_numpy() for name in self.columns if self._frame[name].dtype == np.int64}
        numbers = [name for name, value in self._plain[0].items() if type(value) is int]
        return {name: np.array([record[name] for record in self._plain], dtype=np.int64) for name in numbers}

    def copied(self, rows: np.ndarray) -> pa.Array:
        return self.printed({name: Stored(name) for name in self.columns}, rows)

    def printed(self, fields: Mapping[str, Any], rows: np.ndarray) -> pa.Array:
        if self._plain is None or not all(map(_is_plain, fields.values())) or not all(map(_is_plain_text, fields)):
            return self._printed_by_pandas(fields, rows)
        columns = [
            [self._plain[row][field.name] for row in rows.tolist()] if isinstance(field, Stored) else field.tolist()
            for field in fields.values()
        ]
        records = (dict(zip(fields, values, strict=True)) for values in zip(*columns, strict=True))
        # A slash can only stand inside a text.
        return pa.array([f"{_print(record)}\n".replace("/", "\\/").encode() for record in records], pa.large_binary())

    def _printed_by_pandas(self, fields: Mapping[str, Any], rows: np.ndarray) -> pa.Array:
        chosen = self._frame.take(rows)
        columns = {
            name: chosen[field.name] if isinstance(field, Stored) else pd.Series(field, chosen.index, field.dtype)
            for name, field in fields.items()
        }
        return pa.array(json_lines(pd.DataFrame(columns)).splitlines(keepends=True), pa.large_binary())


class RecordFormat:
    """Records in the format of the file they come from; rows of any other source as JSON lines."""

    name = RECORDS

    def write(self, table: Table, stream: Writable) -> None:
        stream.write(json_lines(table.to_pandas()))


def json_lines(frame: pd.DataFrame) -> bytes:
    """A data frame as JSON lines."""
    return (frame.to_json(orient="records", lines=True) or "").encode("ascii") if len(frame) else b""


def _is_plain(field: Any) -> bool:
    """Whether values are texts or whole numbers: how those are printed is known."""
    return isinstance(field, Stored) or field.dtype.kind == "i" or all(map(_is_plain_text, field))


def _is_plain_text(value: Any) -> bool:
    return type(value) is str and not _ODD_LETTER.search(value)


@lru_cache
def _stay_as_they_are(names: tuple[str, ...]) -> bool:
    """Whether pandas leaves the names of fields alone; it takes some for numbers or dates."""
    frame = pd.read_json(io.StringIO(_print(dict.fromkeys(names, 0))), orient="records", lines=True)
    return [*frame.columns] == [*names] and all(isinstance(name, str) for name in frame.columns)


def _parse_plain(lines: list[bytes]) -> list[dict[str, Any]]:
    records = [_parse_line(line) for line in lines]
    names = list(records[0])
    if not _stay_as_they_are(tuple(names)) or any(list(record) != names for record in records):
        raise _NotPlainError("records with different fields")
    for name in names:
        _check_column(name, [record[name] for record in records])
    return records


def _parse_line(line: bytes) -> dict[str, Any]:
    record = _parse(line.decode("utf-8"))
    if not isinstance(record, dict) or not record:
        raise _NotPlainError("not a record")
    if b"\x7f" in line or _ODD_ESCAPE.search(line):
        _check_escapes(line)
    return record


def _check_escapes(line: bytes) -> None:
    left = _PAIR.sub(b" ", line.replace(rb"\\", b" "))
    if b"\x7f" in left or _ODD_ESCAPE.search(left):
        raise _NotPlainError("a character that pandas does not escape, or half of one")


def _check_column(name: str, values: list[Any]) -> None:
    """Raise unless pandas would leave a column unchanged."""
    kind = type(values[0])
    if _DATE_NAME.fullmatch(name) or any(type(value) is not kind for value in values):
        raise _NotPlainError("dates, or a column of many kinds")
    if kind in (list, dict) or (kind is int and all(value in _INT64 for value in values)):
        return
    if kind is not str or all(map(_looks_like_a_number, values)):
        raise _NotPlainError("texts that are numbers")


def _looks_like_a_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
