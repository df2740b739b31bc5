"""Tables: a narrow, lazy, immutable view of CSV rows and columns, in one pinned dialect.

The bytes of the published benchmark are what pandas 2.2 reads and prints. That behaviour is pinned here, once, with
every option explicit, so that newer versions of pandas give the same bytes. A `Table` remembers where its rows and
columns come from (a source, row numbers into it, and per column: stored, constant or computed) and reads nothing
before it must. The engine may therefore write it in a better way than through a data frame, without a change in any
competition.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from mlebench.kit.streaming import Survey

Quoting = Literal["minimal", "nonnumeric"]
_QUOTING: dict[Quoting, Literal[0, 2]] = {"minimal": csv.QUOTE_MINIMAL, "nonnumeric": csv.QUOTE_NONNUMERIC}


# From 3.1 on pandas always reads floats exactly and warns when it is asked to; before, it has to be asked.
_EXACT_FLOATS: dict[str, Any] = (
    {"float_precision": "round_trip"} if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else {}
)


def read_frame(source: Any, **options: Any) -> pd.DataFrame:
    """Read a CSV as the reference does: exact floats, pandas' NA tokens, inferred types, text as Python objects."""
    return text_as_objects(pd.read_csv(source, **{**_EXACT_FLOATS, **options}))


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


class CsvSource:
    """A CSV file and the options it is read with; nothing is read before a value is asked for."""

    def __init__(
        self,
        open: Callable[[], BinaryIO],
        sep: str = ",",
        dtype: Mapping[str, type] | None = None,
        encoding: str = "utf-8",
        size: int = 0,
    ):
        self.open = open
        self.sep = sep
        self._dtype = dict(dtype or {})
        self._encoding = encoding
        self.size = size
        self._columns: list[str] | None = None
        self._values: dict[str, np.ndarray] = {}

    @property
    def columns(self) -> list[str]:
        if self._columns is None:
            self._columns = list(self._read(nrows=0).columns)
        return self._columns

    @cached_property
    def frame(self) -> pd.DataFrame:
        return self._read()

    @cached_property
    def survey(self) -> "Survey | None":
        """What is known of a large file that can be worked on in blocks; None: pandas has to read it."""
        return self._first_pass(None)

    @property
    def rows(self) -> int:
        return self.survey.rows if self.survey else len(self.frame)

    def values(self, name: str, rows: np.ndarray | None = None) -> np.ndarray:
        """A column, or some rows of it; from a large file nothing else is kept in memory."""
        values = self._column(name)
        return values if rows is None else values[rows]

    def _column(self, name: str) -> np.ndarray:
        if name not in self._values:
            if "survey" not in self.__dict__:
                self.__dict__["survey"] = self._first_pass(name)
            if not self.survey:
                return values_of(self.frame[name])
            if name not in self._values:
                from mlebench.kit.streaming import read_column

                self._values[name] = read_column(self.open, self.survey, self.sep, name)
        return self._values[name]

    def forget(self) -> None:
        """Give back memory; what is needed again is read again."""
        self._values.clear()
        self.__dict__.pop("frame", None)

    def _first_pass(self, collect: str | None) -> "Survey | None":
        if self.size < STREAM_BYTES or self._encoding != "utf-8" or not set(self._dtype.values()) <= {str}:
            return None
        from mlebench.kit.blocks import NotStreamableError
        from mlebench.kit.streaming import survey

        try:
            made, values = survey(self.open, self.columns, self.sep, list(self._dtype), collect)
        except NotStreamableError:
            return None
        self._values.update(values)
        return made

    def _read(self, **more: Any) -> pd.DataFrame:
        with self.open() as stream:
            return read_frame(stream, sep=self.sep, dtype=self._dtype or None, encoding=self._encoding, **more)


class FrameSource:
    """Values that are in memory already."""

    def __init__(self, frame: pd.DataFrame):
        self._frame = frame

    @property
    def columns(self) -> list[str]:
        return list(self._frame.columns)

    @property
    def rows(self) -> int:
        return len(self._frame)

    def values(self, name: str, rows: np.ndarray | None = None) -> np.ndarray:
        values = values_of(self._frame[name])
        return values if rows is None else values[rows]

    def forget(self) -> None:
        """The values have no other place; they go with the last table that has them."""


class Source(Protocol):
    """Where rows come from."""

    @property
    def columns(self) -> list[str]: ...

    @property
    def rows(self) -> int: ...

    def values(self, name: str, rows: np.ndarray | None = None) -> np.ndarray: ...

    def forget(self) -> None: ...


@dataclass(frozen=True)
class Stored:
    """A column as the source has it."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A column with one value in every row."""

    value: Any


@dataclass(frozen=True, eq=False)
class Computed:
    """A column with its own value in every row of the table that holds it."""

    values: np.ndarray


Column = Stored | Constant | Computed


class Writable(Protocol):
    """All that is asked of a stream to write a table to it."""

    def write(self, data: bytes | memoryview, /) -> Any: ...


class _Utf8:
    """Text in, UTF-8 out."""

    def __init__(self, stream: Writable):
        self._stream = stream

    def write(self, text: str) -> None:
        self._stream.write(text.encode("utf-8"))


class Table:
    """Rows and columns of a source, with columns added to it. Every method returns a new table."""

    def __init__(self, source: Source, rows: np.ndarray | None, columns: dict[str, Column]):
        self.source = source
        self.rows = rows  # row numbers into the source; None: all of them, in the source's order
        self._columns = columns

    @classmethod
    def from_source(cls, source: Source) -> "Table":
        return cls(source, None, {name: Stored(name) for name in source.columns})

    @classmethod
    def from_pandas(cls, frame: pd.DataFrame) -> "Table":
        return cls.from_source(FrameSource(text_as_objects(frame)))

    @classmethod
    def from_columns(cls, columns: Mapping[str, Sequence[Any] | np.ndarray]) -> "Table":
        return cls.from_pandas(_frame({name: as_values(values) for name, values in columns.items()}))

    @classmethod
    def concat(cls, tables: Sequence["Table"]) -> "Table":
        """Rows of one table after those of another; the columns must be the same."""
        first = tables[0]
        if any(set(table.columns) != set(first.columns) for table in tables):
            raise ValueError("only tables with the same columns can be put together")
        stored = all(isinstance(column, Stored) for column in first.definitions.values())
        if stored and all(t.source is first.source and t.definitions == first.definitions for t in tables):
            rows = [np.arange(len(table)) if table.rows is None else table.rows for table in tables]
            return cls(first.source, np.concatenate(rows), dict(first.definitions))
        return cls.from_pandas(pd.concat([table.to_pandas() for table in tables], ignore_index=True))

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    @property
    def definitions(self) -> Mapping[str, Column]:
        """How each column comes about; what an engine needs to write the table without reading it whole."""
        return self._columns

    def __len__(self) -> int:
        return self.source.rows if self.rows is None else len(self.rows)

    def __getitem__(self, name: str) -> np.ndarray:
        """The values of a column: numbers, or objects where it holds text; empty cells are NaN."""
        column = self._column(name)
        if isinstance(column, Computed):
            return column.values
        if isinstance(column, Constant):
            return as_values([column.value] * len(self))
        return self.source.values(column.name, self.rows)

    def __repr__(self) -> str:
        return f"Table({', '.join(self.columns)})"

    def take(self, rows: np.ndarray | Sequence[int]) -> "Table":
        """The rows with these numbers, in this order."""
        rows = np.asarray(rows, dtype=np.intp)
        if len(rows) and rows.min() < 0:  # counted from the end
            rows = np.arange(len(self))[rows]
        kept = {
            name: Computed(column.values[rows]) if isinstance(column, Computed) else column
            for name, column in self._columns.items()
        }
        return Table(self.source, rows if self.rows is None else self.rows[rows], kept)

    def where(self, mask: np.ndarray) -> "Table":
        """The rows where a mask of the table's length is true, in order."""
        return self.take(np.flatnonzero(mask))

    def where_in(self, name: str, values: Sequence[Any] | np.ndarray) -> "Table":
        """The rows whose value in a column is one of these."""
        return self.where(is_in(self[name], values))

    def select(self, *names: str) -> "Table":
        return Table(self.source, self.rows, {name: self._column(name) for name in names})

    def drop(self, *names: str) -> "Table":
        for name in names:
            self._column(name)
        return self.select(*(name for name in self._columns if name not in names))

    def rename(self, names: Mapping[str, str]) -> "Table":
        for name in names:
            self._column(name)
        renamed = {names.get(name, name): column for name, column in self._columns.items()}
        return Table(self.source, self.rows, renamed)

    def assign(self, columns: Mapping[str, Any] | None = None, **more: Any) -> "Table":
        """Set columns, in place or at the end: one value for all rows, or a sequence with one for each."""
        added = {name: self._define(name, value) for name, value in {**(columns or {}), **more}.items()}
        return Table(self.source, self.rows, {**self._columns, **added})

    def in_file_order(self) -> "Table":
        """The same rows, in the order in which their file has them."""
        return self if self.rows is None else self.take(np.argsort(self.rows, kind="stable"))

    def sort_by(self, *names: str) -> "Table":
        """Rows in ascending order of these columns; equal rows keep their order, empty cells come last."""
        keys = _frame({str(place): self[name] for place, name in enumerate(names)})
        return self.take(keys.sort_values(list(keys.columns), kind="stable").index.to_numpy())

    def to_pandas(self) -> pd.DataFrame:
        """The way out, for what tables cannot do. A test keeps the list of competitions that use it."""
        return _frame({name: self[name] for name in self.columns})

    def write_csv(self, stream: Writable, *, quoting: Quoting = "minimal", float_format: str | None = None) -> None:
        text: Any = _Utf8(stream)
        self.to_pandas().to_csv(
            text,
            index=False,
            sep=",",
            na_rep="",
            lineterminator="\n",
            quotechar='"',
            quoting=_QUOTING[quoting],
            float_format=float_format,
        )

    @property
    def takes_rows_once(self) -> bool:
        """Whether no row of the source occurs twice."""
        if self.rows is None or bool((np.diff(self.rows) > 0).all()):
            return True
        taken = np.zeros(self.source.rows, dtype=bool)
        taken[self.rows] = True
        return int(taken.sum()) == len(self.rows)

    def _column(self, name: str) -> Column:
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.columns)}") from None

    def _define(self, name: str, value: Any) -> Column:
        if not isinstance(value, list | tuple | np.ndarray | pd.Series):
            return Constant(value)
        values = as_values(value)
        if len(values) != len(self):
            raise ValueError(f"column {name!r} has {len(values)} values for {len(self)} rows")
        return Computed(values)


def header_line(table: Table, quoting: Quoting) -> bytes:
    """The first line of a table's file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=_QUOTING[quoting]).writerow(table.columns)
    return text.getvalue().encode("utf-8")


def is_in(values: np.ndarray, wanted: Sequence[Any] | np.ndarray) -> np.ndarray:
    """A mask: which values are among the wanted ones."""
    return pd.Series(values, dtype=values.dtype).isin(wanted).to_numpy()


def unique(values: np.ndarray) -> np.ndarray:
    """The distinct values, in the order in which they first appear."""
    return pd.unique(pd.Series(values, dtype=values.dtype))


def renumber(values: np.ndarray, start: int = 0) -> np.ndarray:
    """Numbers from `start` on, in the order in which values first appear; equal values get equal numbers."""
    return pd.factorize(pd.Series(values, dtype=values.dtype))[0] + start


def one_hot(values: np.ndarray, classes: Sequence[str]) -> dict[str, np.ndarray]:
    """For each class a column of 0 and 1."""
    return {name: (values == name).astype(np.int64) for name in classes}


def join_text(*parts: np.ndarray | str) -> np.ndarray:
    """Row by row, the text of the parts put together; a part that is a string is the same in every row."""
    length = max(len(part) for part in parts if not isinstance(part, str))
    columns = [repeat(part, length) if isinstance(part, str) else map(str, part.tolist()) for part in parts]
    joined = np.empty(length, dtype=object)
    joined[:] = ["".join(cells) for cells in zip(*columns, strict=True)]
    return joined


def as_values(values: Sequence[Any] | np.ndarray | pd.Series) -> np.ndarray:
    series = values if isinstance(values, pd.Series) else pd.Series(values, dtype=getattr(values, "dtype", None))
    return values_of(series)


def _frame(columns: Mapping[str, np.ndarray]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=values.dtype) for name, values in columns.items()})
