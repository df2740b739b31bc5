"""Tables that come straight from a CSV file, written in one pass over it and in bounded memory.

Lines that pandas would write back unchanged are copied as bytes; of the others the cells are printed anew. Rows that
keep the file's order go out as they come by. Rows in another order (a permutation split) are first sorted into buckets
on disk, each of which is then put in order in memory.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from mlebench.kit.blocks import Block, blocks, bytes_of, in_order, offsets_of
from mlebench.kit.cells import Kind, are_numbers, as_strings, pc, print_values, printed, quoted
from mlebench.kit.streaming import Survey
from mlebench.kit.tables import Column, Computed, Constant, Stored, Table, Writable, header_line

BUCKET_BYTES = 16 << 20


class Emission(NamedTuple):
    """A table and where it goes."""

    table: Table
    stream: Writable
    always_quote_text: bool = False


class _Part(NamedTuple):
    """The lines of a table that come from one block, and their places in the table."""

    lines: pa.Array
    places: np.ndarray


def emit(
    open_file: Callable[[], BinaryIO],
    made: Survey,
    sep: str,
    emissions: list[Emission],
    scratch: Path,
    advance: Callable[[int], None] = lambda _: None,
) -> None:
    """Write all tables that come from one file, in one pass over it; tells the size of each block that is done."""
    with ExitStack() as stack:
        printers = [_Printer(emission, made, sep) for emission in emissions]
        sinks = [_Ordered(p.stream) if p.in_order else _Buckets(p, stack, scratch) for p in printers]

        def print_block(block: Block) -> list[_Part]:
            block.repeats = made.repeats
            return [printer.print(block) for printer in printers]

        for block, parts in in_order(blocks(open_file, len(made.columns), sep), print_block):
            for sink, part in zip(sinks, parts, strict=True):
                if len(part.lines):
                    sink.add(part)
            advance(block.size)
        for sink in sinks:
            sink.finish()


class _Printer:
    """Prints one table, block by block; blocks may come in any order and at the same time."""

    def __init__(self, emission: Emission, made: Survey, sep: str):
        table = emission.table
        self.stream = emission.stream
        self.stream.write(header_line(table, "nonnumeric" if emission.always_quote_text else "minimal"))
        self.rows = made.rows if table.rows is None else len(table.rows)
        self.line_bytes = made.size / max(made.rows, 1)
        self.in_order = table.rows is None or bool((np.diff(table.rows) > 0).all())
        if table.rows is not None and len(table.rows) and table.rows.max() >= made.rows:
            raise IndexError(f"there is no row {table.rows.max()} in a file of {made.rows}")
        self._made = made
        self._quote = emission.always_quote_text
        self._columns = table.definitions
        self._rows = table.rows
        self._places = None if self.in_order else _places(table.rows, made.rows)
        as_stored = list(self._columns.values()) == [Stored(name) for name in made.columns]
        self._as_they_stand = sep == "," and not self._quote
        self._whole_lines = as_stored and self._as_they_stand

    def print(self, block: Block) -> _Part:
        rows, places = self._chosen(block.number)
        if not self.in_order:
            order = np.argsort(places)
            rows, places = rows[order], places[order]
        if not len(rows):
            return _Part(pa.array([], pa.binary()), places)
        clean = self._made.clean[block.number]
        if clean is None:
            return _Part(self._lines(block.cells, rows, places), places)
        dirty = ~np.unpackbits(clean, count=self._size(block.number)).astype(bool)[rows]
        if not self._whole_lines:
            part, as_they_stand = block.part(rows), self._as_they_stand and not dirty.any()
            if as_they_stand:
                part.repeats = frozenset()
            return _Part(self._lines(part.cells, None, places, as_they_stand), places)
        whole = self.in_order and len(rows) == self._size(block.number)
        lines = block.lines if whole else block.lines.take(pa.array(rows))
        if dirty.any():
            anew = self._lines(block.part(rows[dirty]).cells, None, places[dirty])
            lines = pc.replace_with_mask(lines, pa.array(dirty), anew.cast(pa.binary()))
        return _Part(lines, places)

    def _chosen(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of a block that belong to the table, and their places in it."""
        start, end = self._made.starts[number : number + 2]
        if self._places is not None:
            places = self._places[start:end]
            rows = np.flatnonzero(places >= 0)
            return rows, places[rows]
        if self._rows is None:
            return np.arange(end - start), np.arange(start, end)
        first, last = np.searchsorted(self._rows, [start, end])
        return self._rows[first:last] - start, np.arange(first, last)

    def _size(self, number: int) -> int:
        return self._made.starts[number + 1] - self._made.starts[number]

    def _lines(
        self, cells: list[pa.Array], rows: np.ndarray | None, places: np.ndarray, as_they_stand: bool = False
    ) -> pa.Array:
        """Lines made of cells: those of the rows, or all; cells of clean lines are printed as they stand."""
        taken = None if rows is None else pa.array(rows)
        columns = [
            cells[self._made.columns.index(column.name)]
            if as_they_stand and isinstance(column, Stored)
            else self._print(column, cells, taken, places)
            for column in self._columns.values()
        ]
        if len(columns) == 1:  # an empty line would be no row
            columns = [pc.if_else(pc.equal(columns[0], ""), '""', columns[0])]
        last = pc.binary_join_element_wise(columns[-1], "", "\n")
        return pc.binary_join_element_wise(*columns[:-1], last, ",") if len(columns) > 1 else last

    def _print(self, column: Column, cells: list[pa.Array], taken: pa.Array | None, places: np.ndarray) -> pa.Array:
        if isinstance(column, Stored):
            place = self._made.columns.index(column.name)
            stored = cells[place] if taken is None else cells[place].take(taken)
            kind = self._made.kinds[place]
            return self._quoted(printed(stored, kind), text=Kind.TEXT in kind)
        values = np.array([column.value]) if isinstance(column, Constant) else column.values[places]
        bare = print_values(values)
        text = self._quoted(bare, text=values.dtype.kind in "OU")
        if self._quote and values.dtype.kind == "O":
            text = pc.if_else(are_numbers(values), bare, text)
        return text if isinstance(column, Computed) else pa.repeat(text[0], len(places))

    def _quoted(self, cells: pa.Array, *, text: bool) -> pa.Array:
        if text:
            return as_strings(quoted(cells, always=self._quote))
        cells = as_strings(cells)
        # A missing number is printed as text: the empty one.
        return pc.if_else(pc.equal(cells, ""), '""', cells) if self._quote else cells


class _Ordered:
    """Lines that come in the order in which they go out."""

    def __init__(self, stream: Writable):
        self._stream = stream

    def add(self, part: _Part) -> None:
        self._stream.write(bytes_of(part.lines))

    def finish(self) -> None:
        """All is written."""


class _Buckets:
    """Lines sorted into ranges of their final places, on disk until all are there."""

    def __init__(self, printer: _Printer, stack: ExitStack, scratch: Path):
        self._stream = printer.stream
        bucket_rows = max(1, int(BUCKET_BYTES / max(printer.line_bytes, 1)))
        self._starts = np.arange(0, printer.rows, bucket_rows)
        self._files = [stack.enter_context(TemporaryFile(dir=scratch)) for _ in self._starts]  # noqa: SIM115
        self._places: list[list[np.ndarray]] = [[] for _ in self._starts]
        self._lengths: list[list[np.ndarray]] = [[] for _ in self._starts]

    def add(self, part: _Part) -> None:
        places, offsets = part.places, offsets_of(part.lines)
        content = memoryview(part.lines.buffers()[2])
        for bucket, (first, last) in enumerate(pairwise([*np.searchsorted(places, self._starts), len(places)])):
            if first < last:
                self._files[bucket].write(content[offsets[first] : offsets[last]])
                self._places[bucket].append(places[first:last].astype(np.int32))
                self._lengths[bucket].append(np.diff(offsets[first : last + 1]).astype(np.int32))

    def finish(self) -> None:
        with ThreadPoolExecutor(1) as pool:  # one bucket is put in order while the one before is written
            waiting = pool.submit(self._ordered, 0)
            for bucket in range(len(self._files)):
                ready = waiting.result()
                if bucket + 1 < len(self._files):
                    waiting = pool.submit(self._ordered, bucket + 1)
                self._stream.write(bytes_of(ready))

    def _ordered(self, bucket: int) -> pa.Array:
        file = self._files[bucket]
        file.seek(0)
        content = file.read()
        file.truncate(0)
        places, lengths = np.concatenate(self._places[bucket]), np.concatenate(self._lengths[bucket])
        self._places[bucket], self._lengths[bucket] = [], []
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
        lines = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(lengths), buffers)
        order = np.empty(len(places), dtype=np.int64)
        order[places - self._starts[bucket]] = np.arange(len(places))
        return lines.take(pa.array(order))


def _places(rows: np.ndarray | None, count: int) -> np.ndarray:
    """For each row of the file its place in the table, or -1."""
    places = np.full(count, -1, dtype=np.int32 if count < 1 << 31 else np.int64)
    if rows is not None:
        places[rows] = np.arange(len(rows), dtype=places.dtype)
    return places
