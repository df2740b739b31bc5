"""MAT files (level 5, not compressed), as Matlab saves its variables; for twins."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_INT8, _INT32, _UINT32, _DOUBLE, _MATRIX, _UTF16 = 1, 5, 6, 9, 14, 17  # what elements of a file hold
_STRUCT, _CHAR, _NUMBERS = 2, 4, 6  # classes of variables
_NAME_BYTES = 32  # for the name of a field, with a trailing zero


def mat_bytes(variables: Mapping[str, Any]) -> bytes:
    """Variables in a MAT file. A mapping is a struct, a list of mappings with the same keys a row of structs.

    Texts stay texts; everything else is numbers, in two dimensions.
    """
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<HH", 0x0100, 0x4D49)
    return header + b"".join(_variable(name, value) for name, value in variables.items())


def _variable(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        text = value.encode("utf-16-le")
        return _matrix(name, _CHAR, (1, len(text) // 2), _element(_UTF16, text))
    if isinstance(value, Mapping):
        return _structs(name, [value])
    if isinstance(value, Sequence) and value and isinstance(value[0], Mapping):
        return _structs(name, value)
    numbers = np.atleast_2d(np.asarray(value, dtype="<f8"))
    return _matrix(name, _NUMBERS, numbers.shape, _element(_DOUBLE, numbers.tobytes(order="F")))


def _structs(name: str, rows: Sequence[Mapping[str, Any]]) -> bytes:
    fields = list(rows[0])
    names = b"".join(field.encode("ascii").ljust(_NAME_BYTES, b"\0") for field in fields)
    values = b"".join(_variable("", row[field]) for row in rows for field in fields)
    length = struct.pack("<HHI", _INT32, 4, _NAME_BYTES)  # a small element: type and size share a word
    return _matrix(name, _STRUCT, (1, len(rows)), length + _element(_INT8, names) + values)


def _matrix(name: str, kind: int, shape: Sequence[int], content: bytes) -> bytes:
    flags = _element(_UINT32, struct.pack("<II", kind, 0))
    sides = _element(_INT32, struct.pack(f"<{len(shape)}i", *shape))
    return _element(_MATRIX, flags + sides + _element(_INT8, name.encode("ascii")) + content)


def _element(kind: int, content: bytes) -> bytes:
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)
