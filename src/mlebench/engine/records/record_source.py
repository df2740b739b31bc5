"""Records: what a table is to a CSV file, for files of JSON lines and of BSON documents.

`raw.records` returns a `Table` whose columns are the records' fields, and `write_records` writes one back in the format
it came in. Records are read and written block by block; unchanged ones are copied as bytes.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa

from mlebench.engine.frames import as_values
from mlebench.engine.progress import SILENT_STAGE, Stage
from mlebench.engine.raw_streams import data_errors
from mlebench.engine.row_order import PlacedLines, RowChoice, row_writer
from mlebench.engine.tables import Column, ComputedColumn, StoredColumn, Table, TableOutput, Writable, write_from_memory

# Memory for integer columns kept while another column is read: enough for two columns of cdiscount's seven million.
COLLECT_BYTES = 128 << 20
PRINTED_BYTES = 1 << 20  # at a time: work is faster on what stays in the processor's cache
RECORDS = "records"  # means the format of the source file


class RecordBlock(Protocol):
    """Some records of a file, one after the other."""

    size: int

    def values(self, name: str, rows: np.ndarray) -> np.ndarray:
        """A field of some records; NaN where a record lacks it."""
        ...

    def whole_numbers(self) -> Mapping[str, np.ndarray]:
        """The fields that hold a whole number in every record."""
        ...

    def copied(self, rows: np.ndarray) -> pa.Array:
        """Some records, with all of their fields unchanged."""
        ...

    def printed(self, fields: Mapping[str, Any], rows: np.ndarray) -> pa.Array:
        """Some records with these fields: `StoredColumn`s, or an array of values with one for each row."""
        ...


class RecordSource:
    """A file of records. A format says how the file falls into blocks; they must be the same each time."""

    label: str | None = None

    def __init__(self, open_file: Callable[[], BinaryIO], size: int):
        self.open = self.open_unwatched = open_file
        self.size = size
        self._numbers: dict[str, np.ndarray] = {}

    @property
    def columns(self) -> list[str]:
        raise NotImplementedError

    @cached_property
    def starts(self) -> list[int]:
        """The number of each block's first record, and at the end the number of records."""
        return list(accumulate(self.block_rows(), initial=0))

    def block_rows(self) -> Iterator[int]:
        """How many records each block has; the first pass over the file."""
        raise NotImplementedError

    def blocks(self) -> Iterator[RecordBlock]:
        raise NotImplementedError

    @property
    def rows(self) -> int:
        return self.starts[-1]

    def values(self, name: str, rows: np.ndarray | None = None) -> np.ndarray:
        """A field, in one pass over the file that also collects the fields of whole numbers, for later calls."""
        if name in self._numbers:
            return self._numbers[name] if rows is None else self._numbers[name][rows]
        distinct, order = (None, None) if rows is None else np.unique(rows, return_inverse=True)
        choice = RowChoice(distinct, self.starts)
        numbers, pieces = WholeNumbers(), []
        with no_garbage():
            for number, block in enumerate(self.blocks()):
                chosen, _ = choice.of_block(number)
                if len(chosen):
                    pieces.append(block.values(name, chosen))
                numbers.add(block)
        self._numbers |= numbers.columns()
        values = np.concatenate(pieces) if pieces else np.array([], dtype=object)
        return values if order is None else values[order]

    def write(self, targets: Sequence[TableOutput], scratch: Path, stage: Stage) -> None:
        """Records stream into files of the same format as they are read; everything else is written from memory."""
        records: list[tuple[Table, Writable]] = []
        from_memory: list[TableOutput] = []
        for target in targets:
            if target.format.name != RECORDS:
                from_memory.append(target)
            elif target.table.takes_rows_once:
                records.append((target.table, target.stream))
            else:
                raise ValueError("a record can be written only once")
        write_from_memory(from_memory, 0 if records else self.size, stage)
        if records:
            with data_errors(self.label, IndexError):  # missing rows are the caller's fault
                write_records_in_one_pass(self, records, scratch, stage)

    def forget(self) -> None:
        self._numbers.clear()


@contextmanager
def no_garbage() -> Iterator[None]:
    """Records hold no cycles, and looking for cycles in them takes as long as parsing them."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class WholeNumbers:
    """The fields that hold a whole number in every record, as long as they do not grow too large."""

    def __init__(self) -> None:
        self.names: set[str] = set()  # also of those that are too large
        self._pieces: dict[str, list[np.ndarray]] | None = None
        self._bytes = 0

    def add(self, block: RecordBlock) -> None:
        block_numbers = block.whole_numbers()
        self.names = {*block_numbers} if self._pieces is None else self.names & block_numbers.keys()
        if self._pieces == {}:
            return
        before = {name: [] for name in block_numbers} if self._pieces is None else self._pieces
        self._pieces = {name: before[name] for name in before.keys() & block_numbers.keys()}
        for name, pieces in self._pieces.items():
            pieces.append(block_numbers[name])
            self._bytes += block_numbers[name].nbytes
        if self._bytes > COLLECT_BYTES:
            self._pieces = {}

    def columns(self) -> dict[str, np.ndarray]:
        return {name: np.concatenate(pieces) for name, pieces in (self._pieces or {}).items()}


def write_records_in_one_pass(
    source: RecordSource, jobs: Sequence[tuple[Table, Writable]], scratch: Path, stage: Stage = SILENT_STAGE
) -> None:
    """Write all tables of records that come from one file, in one pass over it."""
    with ExitStack() as stack, no_garbage():
        row_bytes = source.size / max(source.rows, 1)
        choices = [RowChoice(table.rows, source.starts) for table, _ in jobs]
        writers = [
            row_writer(choice, stream, row_bytes, stack, scratch)
            for choice, (_, stream) in zip(choices, jobs, strict=True)
        ]
        part = stage.part(source.size, source.size + sum(writer.remaining_work for writer in writers))
        source.open = source.open_unwatched  # this pass reports its progress here
        for number, block in enumerate(source.blocks()):
            for (table, _), choice, writer in zip(jobs, choices, writers, strict=True):
                rows, positions = choice.of_block(number)
                step = max(1, int(PRINTED_BYTES / row_bytes))
                for start in range(0, len(rows), step):
                    chunk = slice(start, start + step)
                    writer.add(
                        PlacedLines(_lines(table, source, block, rows[chunk], positions[chunk]), positions[chunk])
                    )
            part.advance(block.size)
        for writer in writers:
            writer.finish(part.advance)
        part.finish()


def _lines(table: Table, source: RecordSource, block: RecordBlock, rows: np.ndarray, positions: np.ndarray) -> pa.Array:
    if list(table.definitions.items()) == [(name, StoredColumn(name)) for name in source.columns]:
        return block.copied(rows)
    return block.printed({name: _field(column, positions) for name, column in table.definitions.items()}, rows)


def _field(column: Column, positions: np.ndarray) -> Any:
    if isinstance(column, StoredColumn):
        return column
    if isinstance(column, ComputedColumn):
        return column.values[positions]
    return as_values([column.value] * len(positions))
