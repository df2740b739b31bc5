"""Tables that come straight from a CSV file, written in one pass over it and in bounded memory.

Lines that pandas would write back unchanged are copied as bytes; the cells of the others are printed again.
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from mlebench.engine.csv.blocks import Block, blocks, in_order
from mlebench.engine.csv.cells import CellKind, is_float, pc, printed
from mlebench.engine.csv.printing import CsvStyle, header_line, join_cells, print_cells, quote_cells
from mlebench.engine.csv.scan import CsvScan
from mlebench.engine.progress import SILENT_STAGE, Stage
from mlebench.engine.row_order import PlacedLines, RowChoice, row_writer
from mlebench.engine.tables import Column, ComputedColumn, ConstantColumn, StoredColumn, Table, Writable


class RowDestination(NamedTuple):
    """A table and where it goes."""

    table: Table
    stream: Writable
    always_quote_text: bool = False
    float_format: str | None = None


def write_in_one_pass(
    open_file: Callable[[], BinaryIO],
    survey: CsvScan,
    sep: str,
    targets: list[RowDestination],
    scratch: Path,
    stage: Stage = SILENT_STAGE,
) -> None:
    """Write all tables that come from one file, in one pass over it."""
    with ExitStack() as stack:
        printers = [_TablePrinter(target, survey, sep) for target in targets]
        writers = [row_writer(p.choice, p.stream, survey.size / max(survey.rows, 1), stack, scratch) for p in printers]

        def print_block(block: Block) -> list[PlacedLines]:
            block.repeats = survey.repeats
            return [printer.print(block) for printer in printers]

        part_of_stage = stage.part(survey.size, survey.size + sum(writer.remaining_work for writer in writers))
        for block, parts in in_order(blocks(open_file, len(survey.columns), sep), print_block):
            for writer, part in zip(writers, parts, strict=True):
                if len(part.lines):
                    writer.add(part)
            part_of_stage.advance(block.size)
        for writer in writers:
            writer.finish(part_of_stage.advance)
        part_of_stage.finish()


class _TablePrinter:
    """Prints one table, block by block; blocks may arrive in any order and at the same time."""

    def __init__(self, target: RowDestination, survey: CsvScan, sep: str):
        table = target.table
        self.stream = target.stream
        self._style = CsvStyle(target.always_quote_text, target.float_format)
        self.stream.write(header_line(table.columns, self._style))
        self.choice = RowChoice(table.rows, survey.starts)
        self._survey = survey
        self._columns = table.definitions
        as_stored = list(self._columns.values()) == [StoredColumn(name) for name in survey.columns]
        self._as_they_stand = sep == "," and self._style == CsvStyle()
        self._whole_lines = as_stored and self._as_they_stand

    def print(self, block: Block) -> PlacedLines:
        rows, positions = self.choice.of_block(block.number)
        if not len(rows):
            return PlacedLines(pa.array([], pa.binary()), positions)
        clean = self._survey.clean[block.number]
        if clean is None:
            return PlacedLines(self._lines(block.cells, rows, positions), positions)
        dirty = ~np.unpackbits(clean, count=self.choice.block_rows(block.number)).astype(bool)[rows]
        if not self._whole_lines:
            part, as_they_stand = block.part(rows), self._as_they_stand and not dirty.any()
            if as_they_stand:
                part.repeats = frozenset()
            return PlacedLines(self._lines(part.cells, None, positions, as_they_stand), positions)
        takes_all = self.choice.ascending and len(rows) == self.choice.block_rows(block.number)
        lines = block.lines if takes_all else block.lines.take(pa.array(rows))
        if dirty.any():
            reprinted = self._lines(block.part(rows[dirty]).cells, None, positions[dirty])
            lines = pc.replace_with_mask(lines, pa.array(dirty), reprinted.cast(pa.binary()))
        return PlacedLines(lines, positions)

    def _lines(
        self, cells: list[pa.Array], rows: np.ndarray | None, positions: np.ndarray, as_they_stand: bool = False
    ) -> pa.Array:
        """Lines built from cells, for some rows or all; cells of clean lines are printed unchanged."""
        taken = None if rows is None else pa.array(rows)
        columns = [
            cells[self._survey.columns.index(column.name)]
            if as_they_stand and isinstance(column, StoredColumn)
            else self._print(column, cells, taken, positions)
            for column in self._columns.values()
        ]
        return join_cells(columns, self._style)

    def _print(self, column: Column, cells: list[pa.Array], taken: pa.Array | None, positions: np.ndarray) -> pa.Array:
        if isinstance(column, StoredColumn):
            index = self._survey.columns.index(column.name)
            stored = cells[index] if taken is None else cells[index].take(taken)
            kind = self._survey.kinds[index]
            float_format = self._style.float_format
            text = CellKind.TEXT in kind or (bool(float_format) and is_float(kind))
            return quote_cells(printed(stored, kind, float_format), self._style, text=text)
        values = np.array([column.value]) if isinstance(column, ConstantColumn) else column.values[positions]
        printed_values = print_cells(values, self._style)
        return printed_values if isinstance(column, ComputedColumn) else pa.repeat(printed_values[0], len(positions))
