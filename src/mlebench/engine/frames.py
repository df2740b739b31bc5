"""Data frames in one pinned dialect: what pandas makes of CSV files, and columns as numpy arrays.

The bytes of the published benchmark are what pandas 2.2 reads and prints. That behaviour is pinned here and in
`Table.write_csv`, once, with every option explicit, so that newer versions of pandas give the same bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pandas as pd

# From 3.1 on pandas always reads floats exactly and warns when it is asked to; before, it has to be asked.
_EXACT_FLOATS: dict[str, Any] = (
    {"float_precision": "round_trip"} if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else {}
)

# Cells that pandas takes for missing values.
NA_TOKENS = frozenset(
    ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"]
    + ["<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
)


def read_frame(source: Any, **options: Any) -> pd.DataFrame:
    """Read a CSV as the reference does: exact floats, pandas' NA tokens, inferred types, text as Python objects."""
    # Otherwise pandas 3 keeps text in Arrow's memory first, where it takes as much again as the objects made of it.
    with pd.option_context("mode.string_storage", "python"):
        frame = read_csv(lambda: _from_its_start(source), **options)
    return text_as_objects(frame)


def _from_its_start(source: Any) -> AbstractContextManager[Any]:
    if hasattr(source, "seek"):
        source.seek(0)
    return nullcontext(source)


def read_csv(open: Callable[[], AbstractContextManager[Any]], **options: Any) -> pd.DataFrame:
    with open() as stream:
        frame = pd.read_csv(stream, **{**_EXACT_FLOATS, **options})
    doubtful = [name for name in frame if _may_be_too_large(frame[name])]
    if not doubtful:
        return frame
    as_text = {**(options.pop("dtype", None) or {}), **dict.fromkeys(doubtful, str)}
    with open() as stream:
        texts = pd.read_csv(stream, dtype=as_text, **options)
    return frame.assign(**{name: texts[name] for name in doubtful if _too_large(frame[name], texts[name])})


def _may_be_too_large(column: pd.Series) -> bool:
    """Whether a column may hold numbers that fit no type. pandas 2.2 reads it as text; pandas 3 turns some into numbers
    and leaves words for missing values in the text of others."""
    if column.dtype.kind == "f":
        return bool((column.to_numpy() == np.inf).any())
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "integer":
        return True
    return column.dtype.kind == "O" and bool(column.isin(list(NA_TOKENS)).any())


def _too_large(column: pd.Series, text: pd.Series) -> bool:
    """Whether it does. Infinity is such a number unless spelled so; below zero, pandas 2.2 gives infinity too."""
    if column.dtype.kind == "f":
        return any("inf" not in cell.lower() for cell in text.to_numpy()[column.to_numpy() == np.inf])
    return any(map(_exceeds_64_bits, text))


def _exceeds_64_bits(cell: Any) -> bool:
    try:
        return not -(2**63) <= int(cell) < 2**64
    except ValueError:  # text, or a gap
        return False


def text_as_objects(frame: pd.DataFrame) -> pd.DataFrame:
    # pandas 3 infers its own `str` type for text, pandas 2.2 uses objects; sorting and printing follow the latter.
    text = [name for name, kind in frame.dtypes.items() if isinstance(kind, pd.StringDtype)]
    return frame.astype(dict.fromkeys(text, object)) if text else frame


def values_of(series: Any) -> np.ndarray:
    """A column as numpy: numbers and booleans in their own type, all else as objects with NaN where a cell is empty."""
    if series.dtype.kind in "biuf":
        return series.to_numpy()
    return series.to_numpy(dtype=object, na_value=np.nan)


def as_values(values: Sequence[Any] | np.ndarray | pd.Series) -> np.ndarray:
    series = values if isinstance(values, pd.Series) else pd.Series(values, dtype=getattr(values, "dtype", None))
    return values_of(series)


def make_frame(columns: Mapping[str, np.ndarray]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=values.dtype) for name, values in columns.items()})
