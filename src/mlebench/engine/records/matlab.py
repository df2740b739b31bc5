"""MAT files of level 5, as Matlab saves its variables: a field can be cut out of a struct, and all else stays."""

import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

_HEADER_BYTES, _LEVEL = 128, 0x0100
_SUBSYSTEM = slice(116, 124)  # of the header: where values that only Matlab understands are; blank if there are none
_BYTE_ORDERS = {b"IM": "<", b"MI": ">"}
_MATRIX, _COMPRESSED = 14, 15  # what an element holds; any variable is a matrix
_STRUCT = 2  # a class of matrices


class _Element(NamedTuple):
    kind: int
    data: bytes
    encoded: bytes  # with its kind and size before it, and padding after it


def without_struct_field(content: bytes, variable: str, field: str) -> bytes:
    """A MAT file whose variable, a struct or an array of structs, lacks one of its fields; it must have had it.

    A compressed variable is written uncompressed, since compressed bytes differ between versions of the library.
    """
    order = _byte_order(content)
    pieces, cut = [content[:_HEADER_BYTES]], False
    for element in _elements(content[_HEADER_BYTES:], order):
        matrix = element
        if element.kind == _COMPRESSED:
            (matrix,) = _elements(zlib.decompress(element.data), order)
        if matrix.kind == _MATRIX and _name_of(matrix, order) == variable.encode("ascii"):
            pieces.append(_without_field(matrix, order, variable, field))
            cut = True
        else:
            pieces.append(element.encoded)
    if not cut:
        raise ValueError(f"it has no variable {variable}")
    return b"".join(pieces)


def _byte_order(content: bytes) -> str:
    order = _BYTE_ORDERS.get(content[126:_HEADER_BYTES])
    if order is None or struct.unpack_from(f"{order}H", content, 124) != (_LEVEL,):
        raise ValueError("it is not a MAT file of level 5")
    if content[_SUBSYSTEM].strip(b"\0 "):
        raise ValueError("it has objects of Matlab's own, which cannot be read")
    return order


def _elements(content: bytes, order: str) -> Iterator[_Element]:
    start = 0
    while start < len(content):
        if len(content) < start + 8:
            raise ValueError("it ends in the middle of an element")
        kind, size = struct.unpack_from(f"{order}II", content, start)
        if kind >> 16:  # a small element: kind and size share four bytes, and the data are in the next four
            kind, size, data_start, end = kind & 0xFFFF, kind >> 16, start + 4, start + 8
        else:
            data_start = start + 8
            end = data_start + size + (0 if kind == _COMPRESSED else -size % 8)
        if len(content) < data_start + size:
            raise ValueError("it ends in the middle of an element")
        yield _Element(kind, content[data_start : data_start + size], content[start:end])
        start = end


def _name_of(matrix: _Element, order: str) -> bytes | None:
    """The name of a variable; an empty matrix may have none."""
    name = next(islice(_elements(matrix.data, order), 2, None), None)
    return name and name.data


def _without_field(matrix: _Element, order: str, variable: str, field: str) -> bytes:
    """The matrix, encoded: its flags, shape, name, width of field names, field names, and each struct's values."""
    parts = [*_elements(matrix.data, order)]
    (flags,) = struct.unpack_from(f"{order}I", parts[0].data)
    if flags & 0xFF != _STRUCT:
        raise ValueError(f"its variable {variable} is not a struct")
    (width,) = struct.unpack(f"{order}i", parts[3].data)
    padded = [parts[4].data[start : start + width] for start in range(0, len(parts[4].data), width)]
    names = [name.split(b"\0")[0] for name in padded]
    if field.encode("ascii") not in names:
        raise ValueError(f"its variable {variable} has no field {field}")
    number = names.index(field.encode("ascii"))
    del padded[number]
    values = [value.encoded for at, value in enumerate(parts[5:]) if at % len(names) != number]
    kept_names = _encoded(parts[4].kind, b"".join(padded), order)
    return _encoded(_MATRIX, b"".join([*(part.encoded for part in parts[:4]), kept_names, *values]), order)


def _encoded(kind: int, data: bytes, order: str) -> bytes:
    return struct.pack(f"{order}II", kind, len(data)) + data + bytes(-len(data) % 8)
