"""BSON documents: read, cut and written without the library that made them.

A document is copied as bytes where decoding and encoding it again would give the same bytes, which the kinds of values
below guarantee; a file with any other is refused.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from mlebench.core.errors import PrerequisiteError, RawDataError
from mlebench.engine.records.record_source import RecordSource, WholeNumbers
from mlebench.engine.row_order import binary_array
from mlebench.engine.tables import StoredColumn

BLOCK_BYTES = 4 << 20
_DOUBLE, _TEXT, _DOCUMENT, _ARRAY, _BINARY, _TRUTH, _NULL, _INT32, _INT64 = 1, 2, 3, 4, 5, 8, 10, 16, 18
_SIZES = {_DOUBLE: 8, _TRUTH: 1, _NULL: 0, _INT32: 4, _INT64: 8}
_BESIDES = {_TEXT: 4, _BINARY: 5, _DOCUMENT: 0, _ARRAY: 0}  # bytes of a value that are not counted in its length
_LEAST = {_TEXT: 1, _BINARY: 0, _DOCUMENT: 5, _ARRAY: 5}  # the length of an empty one
_FORMATS = {_DOUBLE: struct.Struct("<d"), _INT32: struct.Struct("<i"), _INT64: struct.Struct("<q")}
_LENGTH = struct.Struct("<i")
_FIRST = "_id"  # encoders put it first

Elements = dict[str, tuple[int, int, int]]  # name: kind, where the value begins and where it ends


class BsonSource(RecordSource):
    """A file of BSON documents, one after the other."""

    def __init__(self, open_file: Callable[[], BinaryIO], size: int):
        super().__init__(open_file, size)
        self._columns: dict[str, None] = {}
        self._whole_names: set[str] = set()

    @property
    def columns(self) -> list[str]:
        """The fields of all documents, in the order in which they first appear."""
        _ = self.starts
        return list(self._columns)

    def block_rows(self) -> Iterator[int]:
        numbers = WholeNumbers()
        for block in self.blocks():
            for elements in block.elements:
                self._columns.update(dict.fromkeys(elements))
            block.check()
            numbers.add(block)
            yield len(block.elements)
        self._numbers, self._whole_names = numbers.columns(), numbers.names

    def values(self, name: str, rows: np.ndarray | None = None) -> np.ndarray:
        """A field: whole numbers if every document has one, otherwise objects as they are."""
        values = super().values(name, rows)
        return values.astype(np.int64) if name in self._whole_names else values

    def blocks(self) -> Iterator["_Documents"]:
        with self.open() as stream:
            content = b""
            while fresh := stream.read(BLOCK_BYTES):
                content += fresh
                offsets = _offsets(content)
                if len(offsets) > 1:
                    yield _Documents(content[: offsets[-1]], offsets)
                    content = content[offsets[-1] :]
            if content:
                raise _damaged("it ends in the middle of a document")


class _Documents:
    """Some documents, one after the other."""

    def __init__(self, content: bytes, offsets: list[int]):
        self._content = content
        self._offsets = offsets
        self.size = len(content)

    @cached_property
    def elements(self) -> list[Elements]:
        """For each document, its fields."""
        starts = self._offsets[:-1]
        return [_elements(self._content, start) for start in starts]

    def check(self) -> None:
        """Refuse documents that an encoder would change."""
        for elements in self.elements:
            if _FIRST in elements and next(iter(elements)) != _FIRST:
                raise _unusual("a document whose _id is not its first field")
            for element in elements.values():
                _check(self._content, *element)

    def values(self, name: str, rows: np.ndarray) -> np.ndarray:
        chosen = [self.elements[row].get(name) for row in rows.tolist()]
        values = np.empty(len(chosen), dtype=object)
        values[:] = [np.nan if element is None else _decode(self._content, *element) for element in chosen]
        values[[value is None for value in values]] = np.nan
        return values

    def whole_numbers(self) -> Mapping[str, np.ndarray]:
        every = np.arange(len(self.elements))
        names = [name for name in self.elements[0] if all(self._is_whole(name, elements) for elements in self.elements)]
        return {name: self.values(name, every).astype(np.int64) for name in names}

    def _is_whole(self, name: str, elements: Elements) -> bool:
        return name in elements and elements[name][0] in (_INT32, _INT64)

    def copied(self, rows: np.ndarray) -> pa.Array:
        return binary_array(np.array(self._offsets), self._content).take(pa.array(rows))

    def printed(self, fields: Mapping[str, Any], rows: np.ndarray) -> pa.Array:
        stored = {field.name: name for name, field in fields.items() if isinstance(field, StoredColumn)}
        added = {name: field for name, field in fields.items() if not isinstance(field, StoredColumn)}
        documents = []
        for number, row in enumerate(rows.tolist()):
            # The remaining fields keep their order in the document.
            pieces = {
                stored[name]: _raw_element(stored[name], kind, self._content[start:end])
                for name, (kind, start, end) in self.elements[row].items()
                if name in stored
            }
            pieces |= {name: encode_element(name, _plain(values, number)) for name, values in added.items()}
            first = pieces.pop(_FIRST, b"")
            documents.append(_document(first + b"".join(pieces.values())))
        return pa.array(documents, pa.large_binary())


def encode_document(record: Mapping[str, Any]) -> bytes:
    """A record as a BSON document: whole numbers, floats, texts, bytes, truth values, None, lists and records."""
    return _document(b"".join(encode_element(name, value) for name, value in record.items()))


def encode_element(name: str, value: Any) -> bytes:
    return _raw_element(name, *_encode(value))


def _raw_element(name: str, kind: int, content: bytes) -> bytes:
    if "\0" in name:
        raise ValueError(f"{name!r} cannot be the name of a BSON field")
    return bytes([kind]) + name.encode() + b"\0" + content


def _plain(values: np.ndarray, index: int) -> Any:
    """A value of a column as Python has it; a gap in a column of texts is None."""
    value = values[index]
    if values.dtype == object:
        return None if value is np.nan else value
    return value.item()


def _encode(value: Any) -> tuple[int, bytes]:
    if value is None:
        return _NULL, b""
    if isinstance(value, bool):
        return _TRUTH, bytes([value])
    if isinstance(value, int):
        kind = _INT32 if -(1 << 31) <= value < 1 << 31 else _INT64
        return kind, _FORMATS[kind].pack(value)
    if isinstance(value, float):
        return _DOUBLE, _FORMATS[_DOUBLE].pack(value)
    if isinstance(value, str):
        text = value.encode()
        return _TEXT, _LENGTH.pack(len(text) + 1) + text + b"\0"
    if isinstance(value, bytes):
        return _BINARY, _LENGTH.pack(len(value)) + b"\0" + value
    if isinstance(value, list):
        return _ARRAY, encode_document({str(index): item for index, item in enumerate(value)})
    if isinstance(value, Mapping):
        return _DOCUMENT, encode_document(value)
    raise TypeError(f"{type(value).__name__} cannot be a value in BSON here")


def _document(elements: bytes) -> bytes:
    return _LENGTH.pack(len(elements) + 5) + elements + b"\0"


def _offsets(content: bytes) -> list[int]:
    """Where whole documents begin, and where the last one ends."""
    offsets, offset = [0], 0
    while offset + 4 <= len(content):
        (length,) = _LENGTH.unpack_from(content, offset)
        if length < 5:
            raise _damaged("a document has an impossible length")
        offset += length
        if offset > len(content):
            break
        offsets.append(offset)
    return offsets


def _elements(content: bytes, start: int) -> Elements:
    """The elements of the document that begins here."""
    (length,) = _LENGTH.unpack_from(content, start)
    offset, end = start + 4, start + length - 1
    elements: Elements = {}
    while offset < end:
        kind, stop = content[offset], content.find(b"\0", offset + 1, end)
        if stop < 0:
            raise _damaged("a field has no end")
        name = _name(content[offset + 1 : stop])
        offset = stop + 1 + _value_size(content, kind, stop + 1)
        if offset > end or name in elements:
            raise _damaged(f"the field {name} occurs twice, or is longer than its document")
        elements[name] = kind, stop + 1, offset
    if offset != end or content[end : end + 1] != b"\0":
        raise _damaged("a document does not end where it should")
    return elements


def _name(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise _damaged("a field has a name that is not text") from None


def _value_size(content: bytes, kind: int, start: int) -> int:
    if kind in _SIZES:
        return _SIZES[kind]
    if kind not in _BESIDES:
        raise _unusual(f"a value of kind {kind}")
    length = int.from_bytes(content[start : start + 4], "little", signed=True)
    if length < _LEAST[kind]:
        raise _damaged("a value has an impossible length")
    return length + _BESIDES[kind]


def _check(content: bytes, kind: int, start: int, end: int) -> None:
    """Refuse a value that an encoder would change."""
    if kind in (_DOCUMENT, _ARRAY):
        inner = _elements(content, start)
        if kind == _ARRAY and list(inner) != [str(index) for index in range(len(inner))]:
            raise _unusual("an array with names of its own")
        for element in inner.values():
            _check(content, *element)
    elif (
        (kind == _TEXT and not _is_text(content[start + 4 : end]))
        or (kind == _TRUTH and content[start] > 1)
        or (kind == _BINARY and content[start + 4] != 0)
    ):
        raise _unusual(f"an unusual value of kind {kind}")


def _is_text(content: bytes) -> bool:
    try:
        return content.decode("utf-8").endswith("\0")
    except UnicodeDecodeError:
        return False


def _decode(content: bytes, kind: int, start: int, end: int) -> Any:
    if kind in _FORMATS:
        return _FORMATS[kind].unpack_from(content, start)[0]
    if kind == _TEXT:
        return content[start + 4 : end - 1].decode("utf-8")
    if kind == _BINARY:
        return content[start + 5 : end]
    if kind == _TRUTH:
        return bool(content[start])
    if kind == _NULL:
        return None
    inner = {name: _decode(content, *element) for name, element in _elements(content, start).items()}
    return inner if kind == _DOCUMENT else list(inner.values())


def _damaged(fault: str) -> RawDataError:
    return RawDataError(f"a BSON file is damaged: {fault}")


def _unusual(feature: str) -> PrerequisiteError:
    return PrerequisiteError(f"a BSON file holds {feature}, which cannot be copied safely; get the original data")
