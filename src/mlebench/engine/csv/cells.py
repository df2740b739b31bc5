"""Cells of a CSV column as pandas sees them: what kind each is, and how pandas prints it back.

Everything works on whole columns of text (arrow arrays). Cells that match a column's canonical pattern are printed back
unchanged; the few others are examined one by one, each distinct text once.
"""

import re
from collections.abc import Callable
from enum import Flag, auto
from functools import reduce
from numbers import Number
from operator import or_
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute

from mlebench.engine.frames import NA_TOKENS

pc: Any = pyarrow.compute  # its functions are created at run time, so type checkers do not see them

BOOLEANS = {"true": "True", "false": "False"}  # in any mix of upper and lower case

# Whole numbers and floats that pandas prints back unchanged. A decimal of at most 15 digits is what Python prints for
# the nearest float, unless it has a trailing zero or the exponent form is used.
INT = r"^(?:0|-?[1-9][0-9]{0,17})$"
# Whole numbers that pandas prints differently, such as 007.
LONG_INT = r"^\+?[0-9]{1,18}$"
FLOAT = r"^-?(?:[1-9][0-9]*\.(?:0|[0-9]*[1-9])|0\.(?:0|0{0,3}[1-9](?:[0-9]*[1-9])?))$"
FLOAT_LENGTH = 16
# Floats of any length in the usual spelling: what kind they are is clear, how they are printed is not.
DECIMAL = r"^-?[0-9]{1,18}\.[0-9]+$"
_SPACE = r"[ \t\n\v\f\r]*"
# Digits that may overflow a 64-bit integer. pandas notices before it has seen what comes after them.
HUGE = rf"^{_SPACE}[+-]?{_SPACE}[0-9]{{19}}"
# What may not be just text: numbers in any spelling, infinities, booleans, and pandas' words for a missing value.
DOUBTFUL = (
    rf"^(?:{_SPACE}[+-]?{_SPACE}(?:[0-9]+\.?[0-9]*|\.[0-9]+|(?i:infinity|inf|nan))(?:[eE][+-]?[0-9]+)?{_SPACE}|"
    + "|".join(re.escape(word) for word in sorted(NA_TOKENS))
    + f"|(?i:true|false)|{HUGE[1:]}(?s:.*))$"
)
_HUGE = re.compile(HUGE)
_DOUBTFUL = re.compile(DOUBTFUL)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


class CellKind(Flag):
    """What occurs in a column."""

    MISSING = auto()
    INT = auto()
    FLOAT = auto()
    BOOL = auto()
    TEXT = auto()
    ODD = auto()  # a number in a spelling that readers treat differently
    HUGE = auto()  # a number of many digits, or text that begins with them
    VERBATIM = auto()  # text in which no word means a missing value


Mask = np.ndarray | bool
NOTHING = CellKind(0)
NUMBER = CellKind.INT | CellKind.FLOAT
WORDS = CellKind.TEXT | CellKind.VERBATIM


class CellMasks(NamedTuple):
    """What kind each cell of one column in a block is. A mask that is the same for all may be a plain True or False."""

    kinds: CellKind
    text: Mask = False
    whole_number: Mask = False
    short_float: Mask = False
    empty: Mask = False
    word: Mask = False  # a word for a missing value
    boolean: Mask = False  # as pandas spells it
    huge: Mask = False

    def printed_unchanged(self, kind: CellKind) -> Mask:
        """Which cells are printed back unchanged in a column of that kind, leaving quoting aside."""
        if kind == CellKind.INT:
            return self.whole_number
        if CellKind.TEXT in kind:
            return ~self.word if isinstance(self.word, np.ndarray) else not self.word
        return self.boolean | self.empty if CellKind.BOOL in kind else self.short_float | self.empty


def classify(cells: pa.Array, hint: CellKind = NOTHING) -> CellMasks:
    """Classify a column's cells; a hint at what they probably are only saves time."""
    if isinstance(cells, pa.DictionaryArray):
        masks, indices = classify(cells.dictionary, hint), cells.indices.to_numpy()
        return CellMasks(masks.kinds, *(mask[indices] if isinstance(mask, np.ndarray) else mask for mask in masks[1:]))
    if not len(cells):
        return CellMasks(NOTHING)
    if hint == CellKind.INT and (masks := _classify_whole_numbers(cells)):
        return masks
    if CellKind.FLOAT in hint and CellKind.TEXT not in hint and (masks := _classify_floats(cells)):
        return masks
    doubtful = pc.match_substring_regex(cells, DOUBTFUL)
    if not pc.any(doubtful).as_py():
        return CellMasks(CellKind.TEXT, text=True)
    is_whole = pc.match_substring_regex(cells, INT)
    if pc.all(is_whole).as_py():
        return CellMasks(CellKind.INT, whole_number=True)
    return _classify_each(cells, doubtful, is_whole, _is_short_float(cells))


def _classify_whole_numbers(cells: pa.Array) -> CellMasks | None:
    """The cells of a column of whole numbers, which may be padded with zeros; None if it is not one."""
    is_whole = pc.match_substring_regex(cells, INT)
    if pc.all(is_whole).as_py():
        return CellMasks(CellKind.INT, whole_number=True)
    if pc.all(pc.or_(is_whole, pc.match_substring_regex(cells, LONG_INT))).as_py():
        return CellMasks(CellKind.INT, whole_number=_mask(is_whole))
    return None


def _classify_floats(cells: pa.Array) -> CellMasks | None:
    """The cells of a column that is mostly floats, with a few other numbers and gaps; None if it is not one."""
    short_float = _is_short_float(cells)
    if pc.all(short_float).as_py():
        return CellMasks(CellKind.FLOAT, short_float=True)
    long = cells.filter(pc.invert(short_float))
    unusual = pc.unique(long.filter(pc.invert(pc.match_substring_regex(long, DECIMAL)))).to_pylist()
    if len(unusual) > len(cells) // 4 or not all(map(_DOUBTFUL.match, unusual)):
        return None
    kinds = reduce(or_, map(_kind_of_doubtful, unusual), CellKind.FLOAT)
    if kinds not in NUMBER | CellKind.MISSING:
        return None
    empty = _mask(pc.equal(cells, "")) if "" in unusual else False
    word = words(cells) if CellKind.MISSING in kinds else False
    return CellMasks(kinds, short_float=_mask(short_float), empty=empty, word=word)


def _classify_each(cells: pa.Array, doubtful: pa.Array, is_whole: pa.Array, short_float: pa.Array) -> CellMasks:
    """Classify a column that may mix numbers, text, gaps and booleans."""
    kinds = NOTHING
    decimal = pc.match_substring_regex(cells, DECIMAL)
    number = pc.or_(is_whole, pc.match_substring_regex(cells, LONG_INT))
    for kind, mask in ((CellKind.INT, number), (CellKind.FLOAT, decimal), (CellKind.TEXT, pc.invert(doubtful))):
        if pc.any(mask).as_py():
            kinds |= kind
    for cell in pc.unique(cells.filter(pc.and_not(doubtful, pc.or_(number, decimal)))).to_pylist():
        kinds |= _kind_of_doubtful(cell)
    missing = CellKind.MISSING in kinds
    empty = _mask(pc.equal(cells, "")) if missing else False
    return CellMasks(
        kinds,
        text=~_mask(doubtful) if CellKind.TEXT in kinds else False,
        whole_number=_mask(is_whole),
        short_float=_mask(short_float),
        empty=empty,
        word=words(cells) if missing else False,
        boolean=_mask(pc.is_in(cells, value_set=pa.array(["True", "False"]))) if CellKind.BOOL in kinds else False,
        huge=_mask(pc.match_substring_regex(cells, HUGE)) if CellKind.HUGE in kinds else False,
    )


def _kind_of_doubtful(cell: str) -> CellKind:
    if cell in NA_TOKENS:
        return CellKind.MISSING
    if cell.lower() in BOOLEANS:
        return CellKind.BOOL
    if _HUGE.match(cell):
        return CellKind.HUGE
    if _WHOLE.fullmatch(cell):
        return (
            CellKind.INT if int(cell) or not cell.startswith("-") else CellKind.ODD
        )  # -0: a float keeps its sign, or not
    return CellKind.FLOAT if _NUMBER.fullmatch(cell) and not cell.strip("+-").isdigit() else CellKind.ODD


def repeat_themselves(cells: pa.Array) -> bool:
    """Whether texts repeat enough that it pays to examine each distinct one once."""
    return len(cells) > 1000 and pc.count_distinct(cells).as_py() < len(cells) // 4


def words(cells: pa.Array) -> Mask:
    """Which cells are words for a missing value; an empty cell is not one."""
    if isinstance(cells, pa.DictionaryArray):
        return np.asarray(words(cells.dictionary))[cells.indices.to_numpy()]
    return _mask(pc.is_in(cells, value_set=pa.array(sorted(NA_TOKENS - {""}))))


def is_float(kind: CellKind) -> bool:
    """Whether a column holds floats: those, and whole numbers with gaps."""
    return bool(kind) and kind != CellKind.INT and kind in NUMBER | CellKind.MISSING


def printed(cells: pa.Array, kind: CellKind, float_format: str | None = None) -> pa.Array:
    """A column's cells as pandas prints them, before any quoting."""
    if CellKind.VERBATIM in kind:
        return cells
    if isinstance(cells, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(cells.indices, printed(cells.dictionary, kind, float_format))
    if kind == CellKind.INT:
        is_whole = pc.match_substring_regex(cells, INT)
        return cells if pc.all(is_whole).as_py() else pc.cast(pa.array(_numbers(cells, pa.int64())), pa.string())
    if is_float(kind):
        unchanged = pc.equal(cells, "") if float_format else _is_short_float(cells)
        number_text = float_format.__mod__ if float_format else repr
        return _printed(cells, unchanged, lambda cell: "" if cell in NA_TOKENS else number_text(float(cell)))
    if CellKind.BOOL in kind and CellKind.TEXT not in kind:
        unchanged = pc.is_in(cells, value_set=pa.array(["True", "False"]))
        return _printed(cells, unchanged, lambda cell: BOOLEANS.get(cell.lower(), ""))
    return _printed(cells, pc.invert(pc.is_in(cells, value_set=pa.array(sorted(NA_TOKENS)))), lambda _: "")


def values(cells: pa.Array, kind: CellKind) -> np.ndarray:
    """A column's values: numbers, booleans, or text with NaN where a cell is missing."""
    if isinstance(cells, pa.DictionaryArray):
        return values(cells.dictionary, kind)[cells.indices.to_numpy()]
    if pa.types.is_integer(cells.type):
        return cells.to_numpy()
    if kind == CellKind.INT:
        return _numbers(cells, pa.int64())
    if CellKind.VERBATIM in kind:
        return np.array(cells.to_pylist(), dtype=object)
    missing = pc.is_in(cells, value_set=pa.array(sorted(NA_TOKENS)))
    if not kind or kind in NUMBER | CellKind.MISSING:
        return _numbers(pc.if_else(missing, pa.scalar(None, cells.type), cells), pa.float64())
    if kind == CellKind.BOOL:
        return np.array([cell.lower() == "true" for cell in cells.to_pylist()], dtype=bool)
    cell_values = np.array(cells.to_pylist(), dtype=object)
    if CellKind.TEXT not in kind:
        cell_values = np.array([cell.lower() == "true" for cell in cell_values], dtype=object)
    cell_values[_mask(missing)] = np.nan
    return cell_values


def print_values(column: np.ndarray, float_format: str | None = None) -> pa.Array:
    """Values that were computed, as pandas prints them."""
    if column.dtype.kind in "iu":
        return pc.cast(pa.array(column), pa.string())
    if column.dtype.kind == "b":
        return pc.if_else(pa.array(column), "True", "False")
    if column.dtype.kind == "f" and float_format:
        texts = [float_format % value for value in column.tolist()]
    elif column.dtype.kind == "f" and column.itemsize != 8:  # Python's floats show digits that these do not have
        texts = column.astype(str).tolist()
    else:
        texts = [value if type(value) is str else str(value) for value in column.tolist()]
    cells, gaps = pa.array(texts, pa.string()), pd.isna(column)
    return pc.if_else(pa.array(gaps), "", cells) if gaps.any() else cells


def are_numbers(column: np.ndarray) -> pa.Array:
    """Which values of a column of objects are not text."""
    numbers = (Number, np.bool_)
    return pa.array([isinstance(value, numbers) and bool(value == value) for value in column.tolist()], pa.bool_())


def quoted(cells: pa.Array, tears: str, *, always: bool) -> pa.Array:
    """Cells in quotes: all of them, or those where the pattern `tears` finds something that would split them."""
    if isinstance(cells, pa.DictionaryArray):
        return pa.DictionaryArray.from_arrays(cells.indices, quoted(cells.dictionary, tears, always=always))
    needs = None if always else pc.match_substring_regex(cells, tears)
    if needs is not None and not pc.any(needs).as_py():
        return cells
    wrapped = pc.binary_join_element_wise("", pc.replace_substring(cells, '"', '""'), "", '"')
    return wrapped if needs is None else pc.if_else(needs, wrapped, cells)


def as_strings(cells: pa.Array) -> pa.Array:
    return cells.dictionary.take(cells.indices) if isinstance(cells, pa.DictionaryArray) else cells


def text_lengths(cells: pa.Array) -> np.ndarray:
    """How many bytes each cell takes."""
    if isinstance(cells, pa.DictionaryArray):
        return text_lengths(cells.dictionary)[cells.indices.to_numpy()]
    return pc.binary_length(cells).to_numpy()


def shortest_lengths(numbers: np.ndarray) -> np.ndarray:
    """How many characters each whole number takes when it is printed."""
    size = np.abs(numbers)
    lengths = np.where(numbers < 0, 2, 1)
    limit = 10
    while limit <= size.max(initial=0):
        lengths += size >= limit
        limit *= 10
    return lengths


def _is_short_float(cells: pa.Array) -> pa.Array:
    return pc.and_(pc.match_substring_regex(cells, FLOAT), pc.less_equal(pc.binary_length(cells), FLOAT_LENGTH))


def _printed(cells: pa.Array, canonical: pa.Array, print_one: Callable[[str], str]) -> pa.Array:
    non_canonical = pc.invert(canonical)
    if not pc.any(non_canonical).as_py():
        return cells
    distinct = cells.filter(non_canonical).dictionary_encode()
    printed = pa.array([print_one(cell) for cell in distinct.dictionary.to_pylist()], pa.string())
    return pc.replace_with_mask(cells, non_canonical, printed.take(distinct.indices))


def _numbers(cells: pa.Array, kind: Any) -> np.ndarray:
    return pc.cast(pc.replace_substring_regex(cells, r"^\+", ""), kind).to_numpy(zero_copy_only=False)


def _mask(array: pa.Array) -> np.ndarray:
    return array.to_numpy(zero_copy_only=False)
