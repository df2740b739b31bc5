"""JSON lines as pandas reads and prints them: `read_json(lines=True)`, then `to_json(orient="records", lines=True)`.

pandas types whole columns, so records are read in the same blocks as pandas would read. Most blocks hold nothing that
its typing could change (no floats, no texts that are numbers, the same fields everywhere): these go through msgspec,
which reads only the fields that are asked for and checks their types on the way. The rest go through pandas.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, BinaryIO, TypeVar

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa

from mlebench.engine.frames import as_values, text_as_objects, values_of
from mlebench.engine.records.ascii import in_ascii
from mlebench.engine.records.jsonrecords import record_type
from mlebench.engine.records.record_source import RECORDS, RecordSource
from mlebench.engine.row_order import binary_array
from mlebench.engine.tables import STREAM_BYTES, StoredColumn, Table, Writable

_Columns = dict[str, Sequence[Any]]
_Fields = TypeVar("_Fields", _Columns, pd.DataFrame)
_INT64 = range(-(1 << 63), 1 << 63)
_PLAIN_KINDS = (str, int, list, dict)
_DATE_NAME = re.compile(r".*(_at|_time)|timestamp.*|modified|date|datetime", re.DOTALL | re.IGNORECASE)
_ODD_NAME = re.compile(r"[\x00-\x1f\"\\]")  # msgspec does not accept such names
# An escape that pandas would write differently, in a text in ASCII; slashes are escaped later. Where backslashes follow
# each other, only the first is looked at, and a low surrogate must follow a high one.
_ODD_ESCAPE = re.compile(
    rb'\\(?<!\\\\)(?:\\\\)*+(?!["\\bfnrt]|u(?:00[89a-f]H|0[1-9a-f]HH|[1-9a-cef]HHH|000[0-7bef]|001H|d[0-7]HH|'
    rb"d[89ab]HH\\ud[c-f]HH|(?<=[^\\]\\ud[89ab]HH\\u)d[c-f]HH))".replace(b"H", b"[0-9a-f]")
).search
_IS_TEXT = re.compile(rb'"').match
_parse_text = msgspec.json.Decoder(str).decode
_print = msgspec.json.Encoder().encode
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
        self._parsed: list[_LineBlock] = []  # all blocks, parsed once, of a file that is typed whole or is small

    @property
    def columns(self) -> list[str]:
        if self._columns is None:
            blocks = list(self.blocks()) if self.size < STREAM_BYTES else self.blocks()
            self._columns = next((block.columns for block in blocks), [])
        return self._columns

    def block_rows(self) -> Iterator[int]:
        with self.open() as stream:
            lines = self._lines(stream)
            while rows := [not line.isspace() for line in islice(lines, self._chunk_lines)]:
                if any(rows):
                    yield sum(rows)

    def blocks(self) -> Iterator["_LineBlock"]:
        if self._parsed:
            yield from self._parsed
            return
        line_blocks, columns = [], self._columns
        for lines in self._chunks():
            block = _LineBlock(lines, sum(map(len, lines)), columns)
            columns = columns or block.columns
            if self._chunk_lines is None or self.size < STREAM_BYTES:
                line_blocks.append(block)
            yield block
        self._parsed = line_blocks

    def forget(self) -> None:
        super().forget()
        self._parsed = []

    def _chunks(self) -> Iterator[list[bytes]]:
        with self.open() as stream:
            source = self._lines(stream)
            while lines := list(islice(source, self._chunk_lines)):
                if records := [line for line in lines if not line.isspace()]:
                    yield records

    def _lines(self, stream: BinaryIO) -> Iterator[bytes]:
        """Lines as pandas counts them; where it reads some at a time, a lone carriage return ends one too."""
        return iter(stream) if self._chunk_lines is None else _universal_lines(stream)


def _universal_lines(stream: Iterable[bytes]) -> Iterator[bytes]:
    for line in stream:
        if b"\r" in line:
            yield from line.splitlines(keepends=True)
        else:
            yield line


class _LineBlock:
    """Some lines; read in the fast way where that is safe, otherwise by pandas."""

    def __init__(self, lines: list[bytes], size: int, columns: list[str] | None):
        self._lines = lines
        self.size = size
        self._expected = columns  # the fields of the blocks before
        self._single_fields: _Columns = {}  # fields that were read on their own
        self._odd = False  # whether only pandas can read these lines

    @cached_property
    def _plain(self) -> _Columns | None:
        """All fields, ready to be printed."""
        fields = self._read(_printable)
        return None if fields is None else self._checked(fields)

    @cached_property
    def _kinds(self) -> dict[str, type]:
        """The fields of the first record, and what they hold there."""
        record = _parse(self._lines[0])
        if not isinstance(record, dict) or not record or not _stay_as_they_are(tuple(record)):
            raise _NotPlainError("not a record")
        return {name: type(value) for name, value in record.items()}

    def _read(self, read: Callable[[list[bytes], dict[str, type]], _Columns]) -> _Columns | None:
        """Fields, read in the fast way; None if only pandas can read them."""
        if self._odd:
            return None
        try:
            return read(self._lines, self._kinds)
        except (_NotPlainError, ValueError, OverflowError, KeyError, RecursionError, msgspec.MsgspecError):
            self._odd = True
            return None

    @cached_property
    def _frame(self) -> pd.DataFrame:
        text = io.StringIO(b"\n".join(self._lines).decode("utf-8"))
        frame = text_as_objects(pd.read_json(text, orient="records", lines=True))
        if dates := [str(name) for name, kind in frame.dtypes.items() if kind.kind in "mM"]:
            raise ValueError(f"pandas takes {', '.join(dates)} for dates, which its versions print differently")
        if len(frame) != len(self._lines):  # pandas puts a record together again that is cut in two
            raise ValueError("a record does not end with its line")
        if not all(isinstance(name, str) for name in frame.columns):
            raise ValueError("pandas takes the names of these fields for numbers or dates")
        return self._checked(frame)

    def _checked(self, fields: _Fields) -> _Fields:
        if self._expected and [*fields] != self._expected:
            raise ValueError(f"records with the fields {[*fields]} come after some with {self._expected}")
        return fields

    @cached_property
    def columns(self) -> list[str]:
        """The names of all fields. Finding them is cheaper than finding what pandas makes of their values."""
        names = self._read(lambda lines, kinds: _decoded(lines, dict.fromkeys(kinds, msgspec.Raw), only=True))
        return list(self._frame if names is None else names)

    def values(self, name: str, rows: np.ndarray) -> np.ndarray:
        if name not in self._single_fields:
            wanted = lambda kinds: {name: kinds[name], **_whole_numbers(kinds)}  # noqa: E731
            self._single_fields |= self._read(lambda lines, kinds: _values(lines, wanted(kinds))) or {}
        if self._odd:
            return values_of(self._frame[name])[rows]
        column = self._single_fields[name]
        return as_values([column[row] for row in rows.tolist()])

    def whole_numbers(self) -> Mapping[str, np.ndarray]:
        numbers = self._single_fields or self._read(lambda lines, kinds: _values(lines, _whole_numbers(kinds)))
        if numbers is None or self._odd:
            return {name: self._frame[name].to_numpy() for name in self.columns if self._frame[name].dtype == np.int64}
        return {name: np.array(numbers[name], dtype=np.int64) for name in _whole_numbers(self._kinds)}

    def copied(self, rows: np.ndarray) -> pa.Array:
        return self.printed({name: StoredColumn(name) for name in self.columns}, rows)

    def printed(self, fields: Mapping[str, Any], rows: np.ndarray) -> pa.Array:
        if self._plain is None or not all(map(_is_plain, fields.values())) or _ODD_NAME.search("".join(fields)):
            return self._printed_by_pandas(fields, rows)
        chosen, columns = rows.tolist(), []
        for field in fields.values():
            if isinstance(field, StoredColumn):
                stored = self._plain[field.name]
                columns.append([stored[row] for row in chosen])
            else:
                columns.append(field.tolist())
        records = [*map(record_type(tuple(dict.fromkeys(fields, Any).items())), *columns)]
        # A slash can only be inside a text.
        text = in_ascii(_print_lines(records)).replace(b"/", b"\\/")
        starts = [0]
        while start := text.find(b"\n", starts[-1]) + 1:
            starts.append(start)
        return binary_array(np.array(starts), text)

    def _printed_by_pandas(self, fields: Mapping[str, Any], rows: np.ndarray) -> pa.Array:
        chosen = self._frame.take(rows)
        columns = {
            name: chosen[field.name] if isinstance(field, StoredColumn) else pd.Series(field, chosen.index, field.dtype)
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


def _is_plain(field: Any) -> bool:
    """Whether values are texts or whole numbers: how those are printed is known."""
    return isinstance(field, StoredColumn) or field.dtype.kind == "i" or all(type(value) is str for value in field)


@lru_cache
def _stay_as_they_are(names: tuple[str, ...]) -> bool:
    """Whether pandas leaves the names of fields alone; it takes some for numbers or dates."""
    frame = pd.read_json(io.BytesIO(_print_lines([dict.fromkeys(names, 0)])), orient="records", lines=True)
    return [*frame.columns] == [*names] and all(isinstance(name, str) for name in frame.columns)


def _whole_numbers(kinds: dict[str, type]) -> dict[str, type]:
    return {name: kind for name, kind in kinds.items() if kind is int}


def _decoded(lines: list[bytes], kinds: Mapping[str, Any], *, only: bool = False) -> _Columns:
    """Fields of all records; they must be all fields if there are to be no others."""
    decode = msgspec.json.Decoder(record_type(tuple(kinds.items()), only), float_hook=_refuse).decode
    rows = map(msgspec.structs.astuple, map(decode, lines))
    return dict(zip(kinds, zip(*rows, strict=True), strict=True))


def _values(lines: list[bytes], kinds: dict[str, type]) -> _Columns:
    """Fields of records, unless pandas would change one of them."""
    columns = _decoded(lines, kinds)
    for name, kind in kinds.items():
        _check_column(name, kind, columns[name])
    return columns


def _printable(lines: list[bytes], kinds: dict[str, type]) -> _Columns:
    """All fields, printed except for slashes and characters beyond ASCII; refused if pandas would change one.

    Texts are left as they are in the file, if pandas writes them that way.
    """
    columns = _decoded(lines, {name: int if kind is int else msgspec.Raw for name, kind in kinds.items()}, only=True)
    ascii_lines = [line.isascii() for line in lines]
    for name, kind in kinds.items():
        if kind is str:
            texts = zip(columns[name], ascii_lines, strict=True)
            columns[name] = [
                raw if ascii and _IS_TEXT(raw) and not _ODD_ESCAPE(raw) else _parse_text(raw) for raw, ascii in texts
            ]
        _check_column(name, kind, columns[name])
        if kind in (list, dict):
            parse = msgspec.json.Decoder(kind, float_hook=_refuse).decode
            columns[name] = [msgspec.Raw(_print(parse(raw))) for raw in columns[name]]
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
