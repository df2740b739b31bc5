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
from mlebench.engine.csv.cells import Kind, is_float, pc, printed
from mlebench.engine.csv.printing import Style, header_line, join_cells, print_cells, quote_cells
from mlebench.engine.csv.scan import CsvScan
from mlebench.engine.progress import SILENT_STAGE, Stage
from mlebench.engine.row_order import PlacedLines, RowChoice, row_writer
from mlebench.engine.tables import Column, Computed, Constant, Stored, Table, Writable


class TableTarget(NamedTuple):
    """A table and where it goes."""

    table: Table
    stream: Writable
    always_quote_text: bool = False
    float_format: str | None = None


def write_in_one_pass(
    open_file: Callable[[], BinaryIO],
    survey: CsvScan,
    sep: str,
    targets: list[TableTarget],
    scratch: Path,
    stage: Stage = SILENT_STAGE,
) -> None:
    """Write all tables that come from one file, in one pass over it."""
    with ExitStack() as stack:
        printers = [_Printer(target, survey, sep) for target in targets]
        writers = [row_writer(p.choice, p.stream, survey.size / max(survey.rows, 1), stack, scratch) for p in printers]

        def print_block(block: Block) -> list[PlacedLines]:
            block.repeats = survey.repeats
            return [printer.print(block) for printer in printers]

        part_of_stage = stage.part(survey.size, survey.size + sum(writer.left for writer in writers))
        for block, parts in in_order(blocks(open_file, len(survey.columns), sep), print_block):
            for writer, part in zip(writers, parts, strict=True):
                if len(part.lines):
                    writer.add(part)
            part_of_stage.advance(block.size)
        for writer in writers:
            writer.finish(part_of_stage.advance)
        part_of_stage.finish()


class _Printer:
    """Prints one table, block by block; blocks may arrive in any order and at the same time."""

    def __init__(self, target: TableTarget, survey: CsvScan, sep: str):
        table = target.table
        self.stream = target.stream
        self._style = Style(target.always_quote_text, target.float_format)
        self.stream.write(header_line(table.columns, self._style))
        self.choice = RowChoice(table.rows, survey.starts)
        self._survey = survey
        self._columns = table.definitions
        as_stored = list(self._columns.values()) == [Stored(name) for name in survey.columns]
        self._as_they_stand = sep == "," and self._style == Style()
        self._whole_lines = as_stored and self._as_they_stand

    def print(self, block: Block) -> PlacedLines:
        rows, places = self.choice.of_block(block.number)
        if not len(rows):
            return PlacedLines(pa.array([], pa.binary()), places)
        clean = self._survey.clean[block.number]
        if clean is None:
            return PlacedLines(self._lines(block.cells, rows, places), places)
        dirty = ~np.unpackbits(clean, count=self.choice.block_rows(block.number)).astype(bool)[rows]
        if not self._whole_lines:
            part, as_they_stand = block.part(rows), self._as_they_stand and not dirty.any()
            if as_they_stand:
                part.repeats = frozenset()
            return PlacedLines(self._lines(part.cells, None, places, as_they_stand), places)
        whole = self.choice.ascending and len(rows) == self.choice.block_rows(block.number)
        lines = block.lines if whole else block.lines.take(pa.array(rows))
        if dirty.any():
            reprinted = self._lines(block.part(rows[dirty]).cells, None, places[dirty])
            lines = pc.replace_with_mask(lines, pa.array(dirty), reprinted.cast(pa.binary()))
        return PlacedLines(lines, places)

    def _lines(
        self, cells: list[pa.Array], rows: np.ndarray | None, places: np.ndarray, as_they_stand: bool = False
    ) -> pa.Array:
        """Lines built from cells, for some rows or all; cells of clean lines are printed unchanged."""
        taken = None if rows is None else pa.array(rows)
        columns = [
            cells[self._survey.columns.index(column.name)]
            if as_they_stand and isinstance(column, Stored)
            else self._print(column, cells, taken, places)
            for column in self._columns.values()
        ]
        return join_cells(columns, self._style)

    def _print(self, column: Column, cells: list[pa.Array], taken: pa.Array | None, places: np.ndarray) -> pa.Array:
        if isinstance(column, Stored):
            place = self._survey.columns.index(column.name)
            stored = cells[place] if taken is None else cells[place].take(taken)
            kind = self._survey.kinds[place]
            float_format = self._style.float_format
            text = Kind.TEXT in kind or (bool(float_format) and is_float(kind))
            return quote_cells(printed(stored, kind, float_format), self._style, text=text)
        values = np.array([column.value]) if isinstance(column, Constant) else column.values[places]
        printed_values = print_cells(values, self._style)
        return printed_values if isinstance(column, Computed) else pa.repeat(printed_values[0], len(places))
