"""Data frames in one pinned dialect, and the sources that give them.

The bytes of the published benchmark are what pandas 2.2 reads and prints. That behaviour is pinned here and in
`Table.write_csv`, once, with every option explicit, so that newer versions of pandas give the same bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from mlebench.kit.streaming import Survey

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
    return text_as_objects(_read_csv(lambda: _from_its_start(source), **options))


def _from_its_start(source: Any) -> AbstractContextManager[Any]:
    if hasattr(source, "seek"):
        source.seek(0)
    return nullcontext(source)


def _read_csv(open: Callable[[], AbstractContextManager[Any]], **options: Any) -> pd.DataFrame:
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
    """Whether a column may hold numbers that fit no type. pandas 2.2 reads it as text; 3 makes numbers of some, and in
    the text of others leaves words for missing values."""
    if column.dtype.kind == "f":
        return bool((column.to_numpy() == np.inf).any())
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "integer":
        return True
    return column.dtype.kind == "O" and bool(column.isin(list(NA_TOKENS)).any())


def _too_large(column: pd.Series, text: pd.Series) -> bool:
    """Whether it does. Infinity is such a number unless it was called so; below zero pandas 2.2 has it, too."""
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


# Files from this size on are read and written block by block; below it, pandas is as quick.
STREAM_BYTES = 32 << 20
# Up to this share of a large file's rows, a column's values are picked out while it is read once more.
FEW_ROWS = 1 / 32


class CsvSource:
    """A CSV file and the options it is read with; nothing is read before a value is asked for."""

    label: str | None = None

    def __init__(
        self,
        open: Callable[[], BinaryIO],
        sep: str = ",",
        dtype: Mapping[str, type] | None = None,
        encoding: str = "utf-8",
        size: int = 0,
        watched: Callable[[], BinaryIO] | None = None,
    ):
        self.open = open
        self._open_watched = watched or open  # for who looks into the file; who writes from it tells of that
        self.sep = sep
        self._dtype = dict(dtype or {})
        self._encoding = encoding
        self.size = size
        self._columns: list[str] | None = None
        self._values: dict[str, np.ndarray] = {}

    @property
    def columns(self) -> list[str]:
        if self._columns is None:
            # Who asks for the columns of a small file will ask for its values.
            self._columns = list(self._whole if self.size < STREAM_BYTES else self._read(nrows=0))
        return self._columns

    @cached_property
    def _whole(self) -> dict[str, np.ndarray]:
        """All columns, as pandas reads them."""
        frame = self._read()
        return {name: values_of(frame[name]) for name in frame}

    @cached_property
    def survey(self) -> "Survey | None":
        """What is known of a large file that can be worked on in blocks; None: pandas has to read it."""
        return self._first_pass(None)

    @property
    def rows(self) -> int:
        return self.survey.rows if self.survey else _length(self._whole)

    def values(self, name: str, rows: np.ndarray | None = None) -> np.ndarray:
        """A column, or some rows of it; of a large file nothing else is kept in memory, and of few rows only these."""
        if rows is not None and name not in self._values and (surveyed := self._survey_of_many(rows)):
            from mlebench.kit.streaming import read_rows

            return read_rows(self._open_watched, surveyed, self.sep, name, rows)
        values = self._column(name)
        chosen = values if rows is None else values[rows]
        # Whole numbers that came along with the survey are kept in a smaller type.
        return chosen.astype(np.int64, copy=False) if name in self._values and chosen.dtype.kind == "i" else chosen

    def _survey_of_many(self, few: np.ndarray) -> "Survey | None":
        """The survey, if the file has had one by which these rows are few."""
        surveyed = self.__dict__.get("survey")
        return surveyed if surveyed and 0 < len(few) <= surveyed.rows * FEW_ROWS else None

    def _column(self, name: str) -> np.ndarray:
        if name not in self._values:
            if "survey" not in self.__dict__:
                self.__dict__["survey"] = self._first_pass(name)
            if not self.survey:
                return self._whole[name]
            if name not in self._values:
                from mlebench.kit.streaming import read_column

                self._values[name] = read_column(self._open_watched, self.survey, self.sep, name)
        return self._values[name]

    def forget(self) -> None:
        """Give back memory; what is needed again is read again."""
        self._values.clear()
        self.__dict__.pop("_whole", None)

    def _first_pass(self, collect: str | None) -> "Survey | None":
        if self.size < STREAM_BYTES or self._encoding != "utf-8" or not set(self._dtype.values()) <= {str}:
            return None
        from mlebench.kit.blocks import NotStreamableError
        from mlebench.kit.streaming import survey

        try:
            made, values = survey(self._open_watched, self.columns, self.sep, list(self._dtype), collect)
        except NotStreamableError:
            return None
        self._values.update(values)
        return made

    def _read(self, **more: Any) -> pd.DataFrame:
        opened = self.open if more else self._open_watched
        return _read_csv(opened, sep=self.sep, dtype=self._dtype or None, encoding=self._encoding, **more)


class ColumnSource:
    """Columns that are in memory already."""

    label: str | None = None
    size = 0

    def __init__(self, columns: dict[str, np.ndarray]):
        self._columns = columns

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    @property
    def rows(self) -> int:
        return _length(self._columns)

    def values(self, name: str, rows: np.ndarray | None = None) -> np.ndarray:
        return self._columns[name] if rows is None else self._columns[name][rows]

    def forget(self) -> None:
        """The values have no other place; they go with the last table that has them."""


class Source(Protocol):
    """Where rows come from."""

    label: str | None  # the raw file, for who tells what is wrong with it
    size: int  # bytes that are read from disk, for who tells of progress

    @property
    def columns(self) -> list[str]: ...

    @property
    def rows(self) -> int: ...

    def values(self, name: str, rows: np.ndarray | None = None) -> np.ndarray: ...

    def forget(self) -> None: ...


def as_values(values: Sequence[Any] | np.ndarray | pd.Series) -> np.ndarray:
    series = values if isinstance(values, pd.Series) else pd.Series(values, dtype=getattr(values, "dtype", None))
    return values_of(series)


def make_frame(columns: Mapping[str, np.ndarray]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=values.dtype) for name, values in columns.items()})


def _length(columns: Mapping[str, np.ndarray]) -> int:
    return len(next(iter(columns.values()), ()))
