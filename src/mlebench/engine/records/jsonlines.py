"""JSON lines as pandas reads and prints them: `read_json(lines=True)`, then `to_json(orient="records", lines=True)`.

pandas types whole columns, so records are read in the same blocks as pandas would read. Most blocks hold nothing that
its typing could change (no floats, no texts that are numbers, the same fields everywhere): these go through msgspec,
which reads only the fields that are asked for and checks their types on the way. The rest go through pandas.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, islice, repeat
from operator import contains
from typing import Any, BinaryIO, TypeVar

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from mlebench.engine.frames import as_values, text_as_objects, values_of
from mlebench.engine.records.ascii import in_ascii
from mlebench.engine.records.jsonrecords import record_type
from mlebench.engine.records.source import RECORDS, RecordSource
from mlebench.engine.tables import STREAM_BYTES, Stored, Table, Writable

_Fields = TypeVar("_Fields", dict[str, Sequence[Any]], pd.DataFrame)
PRINTED = 64  # records at a time
_INT64 = range(-(1 << 63), 1 << 63)
_PLAIN_KINDS = (str, int, list, dict)
_DATE_NAME = re.compile(r".*(_at|_time)|timestamp.*|modified|date|datetime", re.DOTALL | re.IGNORECASE)
_ODD_NAME = re.compile(r"[\x00-\x1f\"\\]")  # msgspec does not accept such names
# A text with the escapes that pandas writes and no others, if it is in ASCII; slashes are escaped later.
_AS_PRINTED = re.compile(
    rb'"[^\\]*+(?:\\(?:["\\bfnrt]|u(?:(?!00[0-7]|d[89a-f])[0-9a-f]{4}|00(?:0[0-7bef]|1[0-9a-f])|'
    rb"d[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}))[^\\]*+)*+"
).fullmatch
_parse_text = msgspec.json.Decoder(str).decode
_print_lines = msgspec.json.Encoder().encode_lines


class _NotPlainError(Exception):
    """Something that only pandas can decide."""


def _refuse(text: str) -> Any:
    raise _NotPlainError(text)


_parse = msgspec.json.Decoder(float_hook=_refuse).decode


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
        kept, columns = [], self._columns
        for lines in self._chunks():
            block = _Lines(lines, sum(map(len, lines)), columns)
            columns = columns or block.columns
            if self._chunk_lines is None or self.size < STREAM_BYTES:
                kept.append(block)
            yield block
        self._kept = kept

    def forget(self) -> None:
        super().forget()
        self._kept = []

    def _chunks(self) -> Iterator[list[bytes]]:
        with self.open() as stream:
            source, counted = iter(stream), self._chunk_lines is None
            while lines := list(islice(source, self._chunk_lines)):
                if not counted and any(map(contains, lines, repeat(b"\r"))):
                    source, counted = _universal_lines(chain(lines, source)), True
                    continue
                if records := [line for line in lines if not line.isspace()]:
                    yield records


def _universal_lines(stream: Iterable[bytes]) -> Iterator[bytes]:
    """Lines as pandas counts them when it reads some at a time: a lone carriage return ends one too."""
    for line in stream:
        yield from line.splitlines(keepends=True) if b"\r" in line else [line]


class _Lines:
    """Some lines; read in the fast way where that is safe, otherwise by pandas."""

    def __init__(self, lines: list[bytes], size: int, columns: list[str] | None):
        self._lines = lines
        self.size = size
        self._expected = columns  # the fields of the blocks before
        self._some: dict[str, Sequence[Any]] = {}  # fields that were read on their own
        self._odd = False  # whether only pandas can read these lines

    @cached_property
    def _plain(self) -> dict[str, Sequence[Any]] | None:
        """All fields, ready to be printed."""
        fields = self._read(lambda kinds: kinds, printable=True)
        return None if fields is None else self._checked(fields)

    @cached_property
    def _kinds(self) -> dict[str, type]:
        """The fields of the first record, and what they hold there."""
        record = _parse(self._lines[0])
        if not isinstance(record, dict) or not record or not _stay_as_they_are(tuple(record)):
            raise _NotPlainError("not a record")
        return {name: type(value) for name, value in record.items()}

    def _read(
        self, wanted: Callable[[dict[str, type]], dict[str, type]], *, printable: bool = False
    ) -> dict[str, Sequence[Any]] | None:
        """Some fields, read in the fast way; None if only pandas can read them."""
        if self._odd:
            return None
        try:
            return _read_plain(self._lines, wanted(self._kinds), printable=printable)
        except (_NotPlainError, ValueError, OverflowError, KeyError, RecursionError, msgspec.MsgspecError):
            self._odd = True
            return None

    @cached_property
    def _frame(self) -> pd.DataFrame:
        text = io.StringIO(b"\n".join(self._lines).decode("utf-8"))
        frame = text_as_objects(pd.read_json(text, orient="records", lines=True))
        if dates := [str(name) for name, kind in frame.dtypes.items() if kind.kind in "mM"]:
            raise ValueError(f"pandas takes {', '.join(dates)} for dates, which its versions print differently")
        if not all(isinstance(name, str) for name in frame.columns):
            raise ValueError("pandas takes the names of these fields for numbers or dates")
        return self._checked(frame)

    def _checked(self, fields: _Fields) -> _Fields:
        if self._expected and [*fields] != self._expected:
            raise ValueError(f"records with the fields {[*fields]} come after some with {self._expected}")
        return fields

    @property
    def columns(self) -> list[str]:
        return list(self._frame if self._plain is None else self._plain)

    def values(self, name: str, rows: np.ndarray) -> np.ndarray:
        if name not in self._some:
            self._some |= self._read(lambda kinds: {name: kinds[name], **_whole_numbers(kinds)}) or {}
        if self._odd:
            return values_of(self._frame[name])[rows]
        column = self._some[name]
        return as_values([column[row] for row in rows.tolist()])

    def whole_numbers(self) -> Mapping[str, np.ndarray]:
        numbers = self._some or self._read(_whole_numbers)
        if numbers is None or self._odd:
            return {name: self._frame[name].to_numpy() for name in self.columns if self._frame[name].dtype == np.int64}
        return {name: np.array(numbers[name], dtype=np.int64) for name in _whole_numbers(self._kinds)}

    def copied(self, rows: np.ndarray) -> pa.Array:
        return self.printed({name: Stored(name) for name in self.columns}, rows)

    def printed(self, fields: Mapping[str, Any], rows: np.ndarray) -> pa.Array:
        if self._plain is None or not all(map(_is_plain, fields.values())) or _ODD_NAME.search("".join(fields)):
            return self._printed_by_pandas(fields, rows)
        chosen, columns = rows.tolist(), []
        for field in fields.values():
            if isinstance(field, Stored):
                stored = self._plain[field.name]
                columns.append([stored[row] for row in chosen])
            else:
                columns.append(field.tolist())
        return _printed_lines(map(record_type(tuple(dict.fromkeys(fields, Any).items())), *columns))

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

    def write(self, table: Table, stream: Writable, advance: Callable[[float], None]) -> None:
        stream.write(json_lines(table.to_pandas()))
        advance(len(table))


def json_lines(frame: pd.DataFrame) -> bytes:
    """A data frame as JSON lines."""
    return (frame.to_json(orient="records", lines=True) or "").encode("ascii") if len(frame) else b""


def _printed_lines(records: Iterator[msgspec.Struct]) -> pa.Array:
    pieces = []
    while some := [*islice(records, PRINTED)]:
        # A slash can only be inside a text.
        pieces.append(in_ascii(_print_lines(some)).replace(b"/", b"\\/"))
    text = b"".join(pieces)
    ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n")) + 1
    starts = np.concatenate([[0], ends])
    return pa.Array.from_buffers(pa.large_binary(), len(ends), [None, pa.py_buffer(starts), pa.py_buffer(text)])


def _is_plain(field: Any) -> bool:
    """Whether values are texts or whole numbers: how those are printed is known."""
    return isinstance(field, Stored) or field.dtype.kind == "i" or all(type(value) is str for value in field)


@lru_cache
def _stay_as_they_are(names: tuple[str, ...]) -> bool:
    """Whether pandas leaves the names of fields alone; it takes some for numbers or dates."""
    frame = pd.read_json(io.BytesIO(_print_lines([dict.fromkeys(names, 0)])), orient="records", lines=True)
    return [*frame.columns] == [*names] and all(isinstance(name, str) for name in frame.columns)


def _whole_numbers(kinds: dict[str, type]) -> dict[str, type]:
    return {name: kind for name, kind in kinds.items() if kind is int}


def _read_plain(lines: list[bytes], kinds: dict[str, type], *, printable: bool) -> dict[str, Sequence[Any]]:
    """Fields of records, unless pandas would change one of them.

    To be printable they must be all fields; texts are then left as they are in the file, if pandas writes them that
    way.
    """
    as_read = {name: msgspec.Raw if printable and kind is str else kind for name, kind in kinds.items()}
    decode = msgspec.json.Decoder(record_type(tuple(as_read.items()), printable), float_hook=_refuse).decode
    rows = map(msgspec.structs.astuple, map(decode, lines))
    columns: dict[str, Sequence[Any]] = dict(zip(kinds, zip(*rows, strict=True), strict=True))
    ascii_lines = [line.isascii() for line in lines]
    for name, kind in kinds.items():
        if as_read[name] is msgspec.Raw:
            texts = zip(columns[name], ascii_lines, strict=True)
            columns[name] = [raw if ascii and _AS_PRINTED(raw) else _parse_text(raw) for raw, ascii in texts]
        _check_column(name, kind, columns[name])
    return columns


def _check_column(name: str, kind: type, values: Sequence[Any]) -> None:
    """Raise unless pandas would leave a column unchanged."""
    if _DATE_NAME.fullmatch(name) or kind not in _PLAIN_KINDS:
        raise _NotPlainError("dates, or a column of another kind")
    if kind is int and not (_INT64[0] <= min(values) and max(values) <= _INT64[-1]):
        raise _NotPlainError("numbers of another type")
    if kind is str and all(map(_looks_like_a_number, values)):
        raise _NotPlainError("texts that are numbers")


def _looks_like_a_number(text: str | msgspec.Raw) -> bool:
    try:
        float(text if isinstance(text, str) else _parse_text(text))
    except ValueError:
        return False
    return True
