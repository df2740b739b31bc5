"""CSV files as the source of a table's rows: small ones are read by pandas, large ones block by block."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from mlebench.engine.csv.blocks import NotStreamableError
from mlebench.engine.csv.one_pass import RowDestination, write_in_one_pass
from mlebench.engine.csv.scan import CsvScan, read_column, read_rows, survey_file
from mlebench.engine.frames import NA_TOKENS, read_csv, values_of
from mlebench.engine.progress import Stage
from mlebench.engine.tables import STREAM_BYTES, CsvFormat, TableOutput, write_from_memory

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
        text: Collection[str] = (),
    ):
        self.open = open
        self._open_watched = watched or open  # for reading values; writing reports its own progress
        self.sep = sep
        self._dtype = dict(dtype or {})
        self._text = text  # columns in which no word means a missing value
        self._encoding = encoding
        self.size = size
        self._columns: list[str] | None = None
        self._values: dict[str, np.ndarray] = {}
        self._all_values: dict[str, np.ndarray] | None = None
        self._survey: CsvScan | None = None
        self._is_surveyed = False

    @property
    def columns(self) -> list[str]:
        if self._columns is None:
            # A caller that asks for the columns of a small file will ask for its values next.
            self._columns = list(self._all_columns if self.size < STREAM_BYTES else self._read(nrows=0))
        return self._columns

    @property
    def _all_columns(self) -> dict[str, np.ndarray]:
        """All columns, as pandas reads them."""
        if self._all_values is None:
            frame = self._read()
            self._all_values = {name: values_of(frame[name]) for name in frame}
        return self._all_values

    @property
    def survey(self) -> CsvScan | None:
        """What is known about a large file that can be processed in blocks; None if pandas has to read it."""
        return self._surveyed(None)

    def _surveyed(self, collect: str | None) -> CsvScan | None:
        """The survey; if it is made now, the values of one column are collected on the way."""
        if not self._is_surveyed:
            self._survey, self._is_surveyed = self._first_pass(collect), True
        return self._survey

    @property
    def rows(self) -> int:
        return self.survey.rows if self.survey else len(next(iter(self._all_columns.values()), ()))

    def values(self, name: str, rows: np.ndarray | None = None) -> np.ndarray:
        """Return a column, or some rows of it. Of a large file, the column is cached, or only the rows if few."""
        if rows is not None and name not in self._values and (surveyed := self._survey_of_many(rows)):
            return read_rows(self._open_watched, surveyed, self.sep, name, rows)
        values = self._column(name)
        chosen = values if rows is None else values[rows]
        # Whole numbers collected during the survey are kept in a smaller type.
        return chosen.astype(np.int64, copy=False) if name in self._values and chosen.dtype.kind == "i" else chosen

    def _survey_of_many(self, few: np.ndarray) -> CsvScan | None:
        """The survey, if the file has one and these rows are few compared with its total."""
        return self._survey if self._survey and 0 < len(few) <= self._survey.rows * FEW_ROWS else None

    def _column(self, name: str) -> np.ndarray:
        if name not in self._values:
            survey = self._surveyed(name)
            if not survey:
                return self._all_columns[name]
            if name not in self._values:
                self._values[name] = read_column(self._open_watched, survey, self.sep, name)
        return self._values[name]

    def map_column(self, name: str, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """What a function of arrays makes of a column; of a large file, it gets the values of some rows at a time."""
        if (survey := self.survey) is None or name in self._values:
            return function(self.values(name))
        return read_column(self._open_watched, survey, self.sep, name, function)

    def write(self, targets: Sequence[TableOutput], scratch: Path, stage: Stage) -> None:
        """Rows of a large file stream into CSV files as they are read; other tables are written from memory."""
        streamed: list[RowDestination] = []
        from_memory: list[TableOutput] = []
        for target in targets:
            table, format, stream = target
            if isinstance(format, CsvFormat) and format.sep == "," and self.survey and table.takes_rows_once:
                streamed.append(RowDestination(table, stream, format.quoting == "nonnumeric", format.float_format))
            else:
                from_memory.append(target)
        write_from_memory(from_memory, 0 if streamed else self.size, stage)
        if streamed and self.survey:
            self.forget()  # values that were needed to choose rows
            write_in_one_pass(self.open, self.survey, self.sep, streamed, scratch, stage)

    def forget(self) -> None:
        self._values.clear()
        self._all_values = None

    def _first_pass(self, collect: str | None) -> CsvScan | None:
        if self.size < STREAM_BYTES or self._encoding != "utf-8" or not set(self._dtype.values()) <= {str}:
            return None
        try:
            survey, values = survey_file(self._open_watched, self.columns, self.sep, self._dtype, self._text, collect)
        except NotStreamableError:
            return None
        self._values.update(values)
        return survey

    def _read(self, **more: Any) -> pd.DataFrame:
        opened = self.open if more else self._open_watched
        options = {"sep": self.sep, "encoding": self._encoding, **more}
        if self._text and not more:
            gaps = {name: [*NA_TOKENS] for name in self._read(nrows=0) if name not in self._text}
            options |= {"keep_default_na": False, "na_values": gaps}
        return read_csv(opened, dtype={**self._dtype, **dict.fromkeys(self._text, str)} or None, **options)
