"""Lines of CSV, as pandas 2.2 prints them on Python 3.11.

pandas leaves quoting to Python's `csv`, which has changed: from Python 3.13 on it also quotes a cell with a lone
carriage return. So every line is built here, and its bytes do not depend on the versions of Python and pandas.
"""

import re
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mlebench.engine.csv.cells import are_numbers, as_strings, pc, print_values, quoted

EMPTY = '""'


class CsvStyle(NamedTuple):
    """How cells become lines."""

    quote_text: bool = False  # all text, not only cells that would be split otherwise
    float_format: str | None = None
    sep: str = ","
    newline: str = "\n"


def header_line(names: Iterable[str], style: CsvStyle) -> bytes:
    """The first line of a file."""
    cells = quote_cells(pa.array(list(names), pa.string()), style, text=True).to_pylist()
    return f"{style.sep.join(cells) or EMPTY}{style.newline}".encode()


def print_cells(values: np.ndarray, style: CsvStyle) -> pa.Array:
    """A column of values, ready to be joined with others."""
    kind = values.dtype.kind
    if style.quote_text and kind == "f":
        values = values.astype(np.float64)  # pandas then prints narrow floats as Python's
    bare = print_values(values, style.float_format)
    quoted_cells = quote_cells(bare, style, text=kind in "OU" or (kind == "f" and bool(style.float_format)))
    return pc.if_else(are_numbers(values), bare, quoted_cells) if style.quote_text and kind == "O" else quoted_cells


def print_as_they_are(values: Sequence[Any], style: CsvStyle) -> pa.Array:
    """Values as Python shows them, including NaN; None is empty."""
    bare = pa.array(["" if value is None else str(value) for value in values], pa.string())
    quoted_cells = quote_cells(bare, style, text=True)
    if not style.quote_text:
        return quoted_cells
    return pc.if_else(pa.array([isinstance(value, Number) for value in values], pa.bool_()), bare, quoted_cells)


def quote_cells(cells: pa.Array, style: CsvStyle, *, text: bool) -> pa.Array:
    """Printed cells with quotes where needed. A missing number counts as text: the empty string."""
    if text:
        tears = f'[{re.escape(style.sep + style.newline)}"]'
        return as_strings(quoted(cells, tears, always=style.quote_text))
    cells = as_strings(cells)
    return pc.if_else(pc.equal(cells, ""), EMPTY, cells) if style.quote_text else cells


def join_cells(columns: Sequence[pa.Array], style: CsvStyle) -> pa.Array:
    """Lines made of the cells of each column."""
    *first_columns, last = columns
    if not first_columns:  # pandas would not read an empty line as a row
        last = pc.if_else(pc.equal(last, ""), EMPTY, last)
    last = pc.binary_join_element_wise(last, "", style.newline)
    return pc.binary_join_element_wise(*first_columns, last, style.sep) if first_columns else last


def bytes_of(lines: pa.Array) -> memoryview:
    """The text of all lines, one after the other."""
    offsets = offsets_of(lines)
    return memoryview(lines.buffers()[2])[offsets[0] : offsets[-1]] if len(lines) else memoryview(b"")


def offsets_of(lines: pa.Array) -> np.ndarray:
    large = pa.types.is_large_binary(lines.type) or pa.types.is_large_string(lines.type)
    offsets = np.frombuffer(lines.buffers()[1], dtype=np.int64 if large else np.int32)
    return offsets[lines.offset : lines.offset + len(lines) + 1]
