"""Tables: a narrow, lazy, immutable view of CSV rows and columns, in one pinned dialect.

A `Table` remembers where its rows and columns come from (a source, row numbers into it, and per column: stored,
constant or computed) and reads nothing until it must. The engine can therefore write it in a better way than through a
data frame, without changing any competition.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import pyarrow as pa

from mlebench.core.authors import checked
from mlebench.core.errors import CompetitionError, RawDataError
from mlebench.core.suggestions import did_you_mean
from mlebench.engine.csv.cells import pc
from mlebench.engine.csv.printing import CsvStyle, bytes_of, header_line, join_cells, print_cells
from mlebench.engine.frames import as_values, make_frame, values_of
from mlebench.engine.progress import Stage
from mlebench.engine.raw_streams import data_errors

# Files of at least this size are read and written block by block; below it, pandas is just as fast.
STREAM_BYTES = 32 << 20
Quoting = Literal["minimal", "nonnumeric"]
PRINTED_ROWS = 1 << 14  # at a time


@dataclass(frozen=True)
class StoredColumn:
    """A column as the source has it."""

    name: str


@dataclass(frozen=True)
class ConstantColumn:
    """A column with one value in every row."""

    value: Any


@dataclass(frozen=True, eq=False)
class ComputedColumn:
    """A column with its own value in every row of the table that holds it."""

    values: np.ndarray


Column = StoredColumn | ConstantColumn | ComputedColumn


class Writable(Protocol):
    """What a stream must offer to have a table written to it."""

    def write(self, data: bytes | memoryview, /) -> Any: ...


class Format(Protocol):
    """How a table is written."""

    @property
    def name(self) -> str: ...

    def write(self, table: "Table", stream: Writable, advance: Callable[[float], None]) -> None:
        """Write the table from memory, wherever its rows come from; `advance(n)` is called with n rows just written."""
        ...


class TableOutput(NamedTuple):
    """A table, and how and where it is written."""

    table: "Table"
    format: Format
    stream: Writable


def write_from_memory(targets: Sequence[TableOutput], size: int, stage: Stage) -> None:
    """Write tables that are `size` bytes of a stage together."""
    part = stage.part(size, sum(len(table) for table, _, _ in targets))
    for table, format, stream in targets:
        format.write(table, stream, part.advance)
    part.finish()


class TableSource(Protocol):
    """Where rows come from."""

    label: str | None  # the raw file, for error messages
    size: int  # bytes on disk or in memory, for progress reports

    @property
    def columns(self) -> list[str]: ...

    @property
    def rows(self) -> int: ...

    def values(self, name: str, rows: np.ndarray | None = None) -> np.ndarray: ...

    def write(self, targets: Sequence[TableOutput], scratch: Path, stage: Stage) -> None:
        """Write tables of its rows in the best way available (the bytes are the same) and report how much was read."""
        ...

    def forget(self) -> None:
        """Free memory; anything needed later is read again."""
        ...


@runtime_checkable
class ColumnStream(Protocol):
    """A source that can read a column in parts."""

    def map_column(self, name: str, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray: ...


class ColumnSource:
    """Columns that are already in memory."""

    label: str | None = None

    def __init__(self, columns: dict[str, np.ndarray]):
        self._columns = columns
        self.size = sum(values.nbytes for values in columns.values())

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    @property
    def rows(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def values(self, name: str, rows: np.ndarray | None = None) -> np.ndarray:
        return self._columns[name] if rows is None else self._columns[name][rows]

    def write(self, targets: Sequence[TableOutput], scratch: Path, stage: Stage) -> None:  # noqa: ARG002
        write_from_memory(targets, self.size, stage)

    def forget(self) -> None:
        """The values exist only here; they are freed with the last table that uses them."""


class Table:
    """Rows and columns of a source, with columns added to it. Every method returns a new table."""

    def __init__(self, source: TableSource, rows: np.ndarray | None, columns: dict[str, Column]):
        self.source = source
        self.rows = rows  # row numbers into the source; None: all of them, in the source's order
        self._columns = columns

    @classmethod
    def from_source(cls, source: TableSource) -> "Table":
        return cls(source, None, {name: StoredColumn(name) for name in source.columns})

    @classmethod
    @checked
    def from_pandas(cls, frame: pd.DataFrame) -> "Table":
        if dates := [str(name) for name, kind in frame.dtypes.items() if kind.kind in "mM"]:
            raise CompetitionError(f"{', '.join(dates)} hold dates or times; write them as text")
        return cls.from_source(ColumnSource({str(name): values_of(frame[name]) for name in frame}))

    @classmethod
    @checked
    def from_columns(cls, columns: Mapping[str, Sequence[Any] | np.ndarray]) -> "Table":
        arrays = {name: as_values(values) for name, values in columns.items()}
        if len({len(values) for values in arrays.values()}) > 1:
            lengths = ", ".join(f"{name} has {len(values)} values" for name, values in arrays.items())
            raise RawDataError(f"columns of one table must have the same length: {lengths}")
        return cls.from_source(ColumnSource(arrays))

    @classmethod
    @checked
    def concat(cls, tables: Sequence["Table"]) -> "Table":
        """Rows of one table after those of another; the columns must be the same."""
        if not tables:
            raise RawDataError("there is no table to concatenate")
        first = tables[0]
        if different := next((table for table in tables if set(table.columns) != set(first.columns)), None):
            raise RawDataError(f"only tables with the same columns can be concatenated, not {first} and {different}")
        stored = all(isinstance(column, StoredColumn) for column in first.definitions.values())
        if stored and all(t.source is first.source and t.definitions == first.definitions for t in tables):
            rows = [np.arange(len(table)) if table.rows is None else table.rows for table in tables]
            return cls(first.source, np.concatenate(rows), dict(first.definitions))
        return cls.from_pandas(pd.concat([table.to_pandas() for table in tables], ignore_index=True))

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    @property
    def definitions(self) -> Mapping[str, Column]:
        """Where each column comes from: what an engine needs to write the table without reading all of it."""
        return self._columns

    def __len__(self) -> int:
        with data_errors(self.source.label):
            return self.source.rows if self.rows is None else len(self.rows)

    def __getitem__(self, name: str) -> np.ndarray:
        """The values of a column: numbers, or objects where it holds text; empty cells are NaN."""
        column = self._column(name)
        if isinstance(column, ComputedColumn):
            return column.values
        if isinstance(column, ConstantColumn):
            return as_values([column.value] * len(self))
        with data_errors(self.source.label, IndexError):  # missing rows are the caller's fault
            return self.source.values(column.name, self.rows)

    def map_column(self, name: str, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """What a function of arrays makes of a column, row by row.

        A large file's column is passed to it in parts, several at a time, and is never in memory as a whole.
        """
        column = self._column(name)
        if self.rows is not None or not isinstance(column, StoredColumn) or not isinstance(self.source, ColumnStream):
            return function(self[name])
        with data_errors(self.source.label):
            return self.source.map_column(column.name, function)

    def __repr__(self) -> str:
        return f"Table({', '.join(self.columns)})"

    @checked
    def take(self, rows: np.ndarray | Sequence[int]) -> "Table":
        """The rows with these numbers, in this order."""
        if (kind := np.asarray(rows).dtype.kind) not in "iu" and len(rows):
            advice = "`where` takes a mask" if kind == "b" else "they are whole numbers"
            raise CompetitionError(f"`take` takes row numbers: {advice}")
        rows = np.asarray(rows, dtype=np.intp)
        if len(rows) and not -len(self) <= rows.min() <= rows.max() < len(self):
            raise RawDataError(f"row {max(rows.max(), -rows.min())} is taken from a table of {len(self)} rows")
        if len(rows) and rows.min() < 0:  # counted from the end
            rows = np.arange(len(self))[rows]
        columns = {
            name: ComputedColumn(column.values[rows]) if isinstance(column, ComputedColumn) else column
            for name, column in self._columns.items()
        }
        return Table(self.source, rows if self.rows is None else self.rows[rows], columns)

    @checked
    def where(self, mask: np.ndarray) -> "Table":
        """The rows where a mask of the table's length is true, in order."""
        if np.asarray(mask).dtype.kind not in "bO" or len(mask) != len(self):
            raise CompetitionError(f"`where` takes a mask: True or False for each of the {len(self)} rows")
        return self.take(np.flatnonzero(mask))

    @checked
    def where_in(self, name: str, values: Sequence[Any] | np.ndarray) -> "Table":
        """The rows whose value in a column is one of these."""
        return self.where(is_in(self[name], values))

    @checked
    def select(self, *names: str) -> "Table":
        return Table(self.source, self.rows, {name: self._column(name) for name in names})

    @checked
    def drop(self, *names: str) -> "Table":
        for name in names:
            self._column(name)
        return self.select(*(name for name in self._columns if name not in names))

    @checked
    def rename(self, names: Mapping[str, str]) -> "Table":
        for name in names:
            self._column(name)
        renamed = {names.get(name, name): column for name, column in self._columns.items()}
        return Table(self.source, self.rows, renamed)

    @checked
    def assign(self, columns: Mapping[str, Any] | None = None, **more: Any) -> "Table":
        """Set columns, in place or at the end: one value for all rows, or a sequence with one for each."""
        added = {name: self._define(name, value) for name, value in {**(columns or {}), **more}.items()}
        return Table(self.source, self.rows, {**self._columns, **added})

    def in_file_order(self) -> "Table":
        """Return the rows in the order of their file."""
        return self if self.rows is None else self.take(np.argsort(self.rows, kind="stable"))

    @checked
    def sort_by(self, *names: str) -> "Table":
        """Rows in ascending order of these columns; equal rows keep their order, and empty cells come last."""
        return self.take(_sorted(self._keys(names)))

    @checked
    def group_first(self, *names: str) -> "Table":
        """For each value of a column, or of several together, the first row that has it; in ascending order of values.

        Rows without a value are left out. A row is taken as it is: its gaps are not filled from later ones.
        """
        return self.take(_sorted(self._keys(names).drop_duplicates().dropna()))

    @checked
    def group_join(self, by: str, name: str, sep: str = " ") -> "Table":
        """For each value of a column, what another column holds in its rows, as one text; in ascending order of values.

        Rows without a value are left out; an empty cell of the other column is `nan`, as pandas has it.
        """
        groups, keys = pd.factorize(self[by], sort=True)
        order = np.argsort(groups, kind="stable")[np.count_nonzero(groups < 0) :]
        ends = np.cumsum(np.bincount(groups[order], minlength=len(keys)), dtype=np.int32)
        texts = pa.array(map(str, self[name][order].tolist()), pa.string())
        joined = pc.binary_join(pa.ListArray.from_arrays(np.concatenate([np.zeros(1, np.int32), ends]), texts), sep)
        return Table.from_columns({by: np.asarray(keys), name: joined.to_numpy(zero_copy_only=False)})

    def to_pandas(self) -> pd.DataFrame:
        """Convert to a DataFrame (escape hatch). A test keeps the list of competitions that use it."""
        return make_frame({name: self[name] for name in self.columns})

    def write_csv(
        self,
        stream: Writable,
        *,
        sep: str = ",",
        quoting: Quoting = "minimal",
        float_format: str | None = None,
        advance: Callable[[float], None] = lambda _: None,
    ) -> None:
        """The bytes that pandas' `to_csv` gives, some rows at a time."""
        style = CsvStyle(quoting == "nonnumeric", float_format, sep)
        stream.write(header_line(self.columns, style))
        columns = [self[name] for name in self.columns]
        for start in range(0, len(self), PRINTED_ROWS):
            rows = slice(start, start + PRINTED_ROWS)
            stream.write(bytes_of(join_cells([print_cells(values[rows], style) for values in columns], style)))
            advance(PRINTED_ROWS)

    @property
    def takes_rows_once(self) -> bool:
        """Whether no row of the source occurs twice."""
        if self.rows is None or bool((np.diff(self.rows) > 0).all()):
            return True
        taken = np.zeros(self.source.rows, dtype=bool)
        taken[self.rows] = True
        return int(taken.sum()) == len(self.rows)

    def _keys(self, names: Sequence[str]) -> pd.DataFrame:
        return make_frame({str(index): self[name] for index, name in enumerate(names)})

    def _column(self, name: str) -> Column:
        try:
            return self._columns[name]
        except KeyError:
            is_file = self.definitions == {name: StoredColumn(name) for name in self.source.columns}
            table = self.source.label if self.source.label and is_file else "the table"
            raise RawDataError(f"{table} has no column {name!r}; {did_you_mean(str(name), self.columns)}") from None

    def _define(self, name: str, value: Any) -> Column:
        if not isinstance(value, list | tuple | np.ndarray | pd.Series):
            return ConstantColumn(value)
        values = as_values(value)
        if len(values) != len(self):
            raise RawDataError(f"column {name!r} has {len(values)} values for {len(self)} rows")
        return ComputedColumn(values)


@dataclass(frozen=True)
class CsvFormat:
    """CSV as pandas prints it."""

    quoting: Quoting = "minimal"
    float_format: str | None = None
    sep: str = ","
    name = "csv"

    def write(self, table: Table, stream: Writable, advance: Callable[[float], None]) -> None:
        table.write_csv(stream, sep=self.sep, quoting=self.quoting, float_format=self.float_format, advance=advance)


def _sorted(keys: pd.DataFrame) -> np.ndarray:
    return keys.sort_values(list(keys.columns), kind="stable").index.to_numpy()


def is_in(values: np.ndarray, wanted: Sequence[Any] | np.ndarray) -> np.ndarray:
    """A mask: which values are among the wanted ones."""
    return pd.Series(values, dtype=values.dtype).isin(wanted).to_numpy()


def unique(values: np.ndarray) -> np.ndarray:
    """The distinct values, in the order in which they first appear."""
    return pd.unique(pd.Series(values, dtype=values.dtype))


def renumber(values: np.ndarray, start: int = 0) -> np.ndarray:
    """Numbers from `start` on, in the order in which values first appear; equal values get equal numbers."""
    numbers = pd.factorize(values)[0]
    numbers += start  # in place: there may be many
    return numbers


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
