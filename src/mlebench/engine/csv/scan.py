"""Large CSV files, block by block: what pandas would make of them, without holding them in memory.

A first pass finds the kind of every column and whether the file is one that can be split and printed back safely; what
cannot be decided safely is left to pandas. Blocks end where records end; two or more are worked on at once.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from mlebench.engine.csv.blocks import Block, NotStreamableError, blocks, check_block, in_order
from mlebench.engine.csv.cells import (
    NOTHING,
    NUMBER,
    WORDS,
    CellKind,
    CellMasks,
    classify,
    repeat_themselves,
    values,
    words,
)
from mlebench.engine.row_order import RowChoice

COLLECT_BYTES = 64 << 20


@dataclass(frozen=True)
class CsvScan:
    """What the first pass finds out about a file."""

    columns: list[str]
    kinds: list[CellKind]
    size: int  # in bytes, without the header
    starts: list[int]  # the number of each block's first row, and at the end the number of rows
    clean: list[np.ndarray | None]  # for each block, packed: which lines pandas would write back unchanged
    repeats: frozenset[int] = frozenset()  # columns with few distinct texts

    @property
    def rows(self) -> int:
        return self.starts[-1]


@dataclass
class _ColumnScan:
    """What has been seen of one column; gaps between text cells show whether pandas would type a chunk as numbers."""

    chunk_rows: int
    kinds: CellKind = NOTHING
    rows: int = 0
    last_text: int = -1
    widest_gap: int = 0
    huge_before_text: bool = False

    def add(self, masks: CellMasks, rows: int) -> None:
        if not rows:
            return
        if CellKind.HUGE in masks.kinds:
            self.huge_before_text |= self._is_huge_before_text(masks)
        if CellKind.TEXT in masks.kinds:
            text_rows = np.flatnonzero(masks.text) if isinstance(masks.text, np.ndarray) else np.array([0, rows - 1])
            gaps = np.diff(text_rows, prepend=self.last_text - self.rows)
            self.widest_gap = max(
                self.widest_gap, int(gaps.max()) if isinstance(masks.text, np.ndarray) else int(gaps[0])
            )
            self.last_text = self.rows + int(text_rows[-1])
        self.kinds |= masks.kinds
        self.rows += rows

    def likely(self) -> CellKind:
        """The column's kind, as far as known."""
        return self.kinds & WORDS if CellKind.TEXT in self.kinds else self.kinds

    def _is_huge_before_text(self, masks: CellMasks) -> bool:
        """Whether pandas meets a huge number in a chunk before any text; then gaps, if there are any, become text."""
        huge, texts = np.flatnonzero(masks.huge) + self.rows, np.flatnonzero(masks.text) + self.rows
        latest_text = np.concatenate([[self.last_text], texts])[np.searchsorted(texts, huge)]
        return bool((latest_text < huge // self.chunk_rows * self.chunk_rows).any())

    def decided(self) -> CellKind:
        """The column's kind; pandas infers types chunk by chunk, so text and numbers must not come in separate ones."""
        kinds = self.kinds
        if CellKind.HUGE in kinds and (
            CellKind.TEXT not in kinds or (self.huge_before_text and CellKind.MISSING in kinds)
        ):
            raise NotStreamableError("a number of many digits")
        if CellKind.TEXT in kinds:
            last_chunk = (self.rows - 1) // self.chunk_rows * self.chunk_rows
            if kinds & (NUMBER | CellKind.BOOL | CellKind.ODD | CellKind.HUGE) and (
                self.widest_gap >= self.chunk_rows or self.last_text < last_chunk
            ):
                raise NotStreamableError("numbers and text far apart in one column")
            return kinds & WORDS
        if CellKind.ODD in kinds or (CellKind.BOOL in kinds and kinds & NUMBER):
            raise NotStreamableError("numbers in an unusual spelling")
        return CellKind.INT if kinds == CellKind.INT else kinds


def survey_file(
    open_file: Callable[[], BinaryIO],
    columns: list[str],
    sep: str,
    as_text: Collection[str],
    verbatim: Collection[str],
    collect: str | None = None,
) -> tuple[CsvScan, dict[str, np.ndarray]]:
    """The first pass: kinds of all columns and, on request, the values of one, while they are at hand.

    A caller that asks for one column will ask for others, so columns of whole numbers are collected too while they are
    not too large, in the smallest type that holds them.
    """
    if len(columns) < 2:
        raise NotStreamableError("one column: an empty cell is an empty line")
    if len(sep) != 1 or not sep.isascii():
        raise NotStreamableError("an unusual separator")
    first = _FirstPass(columns, sep, as_text, verbatim, collect)
    for block, (classified, numbers) in in_order(blocks(open_file, len(columns), sep), first.classify):
        first.add(block, classified, numbers)
    survey = first.survey()
    return survey, first.values(survey)


class _FirstPass:
    def __init__(
        self, columns: list[str], sep: str, as_text: Collection[str], verbatim: Collection[str], collect: str | None
    ):
        self._columns = columns
        self._sep = sep
        self._as_text = as_text
        self._verbatim = verbatim
        self._seen = [_ColumnScan(_pandas_chunk_rows(len(columns))) for _ in columns]
        self._size, self._starts = 0, [0]
        self._clean: list[tuple[tuple[CellKind, ...], np.ndarray | None]] = []
        # Guesses from the first block, tried on later blocks.
        self._whole_numbers: frozenset[int] = frozenset()
        self._shortest: frozenset[int] = frozenset()  # whole numbers that are printed unchanged
        self._repeats: frozenset[int] = frozenset()
        self._wanted = None if collect is None else columns.index(collect)
        self._cells: list[pa.Array] = []  # of the wanted column
        self._numbers: dict[int, list[np.ndarray]] | None = None if collect is None else {}

    def classify(self, block: Block) -> tuple[list[CellMasks], dict[int, np.ndarray]]:
        """What the cells of a block are; several blocks are worked on at the same time."""
        check_block(block, self._sep)
        block.repeats = self._repeats
        if self._shortest:
            block.read_whole_numbers(self._shortest)
        classified = [
            CellMasks(CellKind.INT, whole_number=True)
            if pa.types.is_integer(cells.type)
            else self._classify_column(index, cells)
            for index, cells in enumerate(block.cells)
        ]
        if self._numbers is None:
            return classified, {}
        whole_columns = [index for index, masks in enumerate(classified) if masks.kinds == CellKind.INT]
        return classified, {index: _narrow(values(block.cells[index], CellKind.INT)) for index in whole_columns}

    def _classify_column(self, index: int, cells: pa.Array) -> CellMasks:
        if self._columns[index] in self._verbatim:
            return CellMasks(WORDS, text=True)
        if self._columns[index] in self._as_text:
            return CellMasks(CellKind.TEXT, text=True, word=words(cells))
        return classify(cells, self._seen[index].kinds)

    def add(self, block: Block, classified: list[CellMasks], numbers: dict[int, np.ndarray]) -> None:
        """Add what was found; blocks come in order."""
        rows = len(block.cells[0])
        if block.number == 0:
            self._whole_numbers = frozenset(
                index for index, masks in enumerate(classified) if masks.kinds == CellKind.INT
            )
            self._shortest = frozenset(index for index in self._whole_numbers if classified[index].whole_number is True)
            self._repeats = frozenset(index for index, cells in enumerate(block.cells) if repeat_themselves(cells))
        for column, masks in zip(self._seen, classified, strict=True):
            column.add(masks, rows)
        self._size += block.size
        self._starts.append(self._starts[-1] + rows)
        self._clean.append((tuple(column.likely() for column in self._seen), _clean(block, classified, self._seen)))
        self._collect(block, numbers)

    def _collect(self, block: Block, numbers: dict[int, np.ndarray]) -> None:
        if self._numbers is not None:
            for index, values in numbers.items():
                self._numbers.setdefault(index, []).append(values)
            if 8 * self._starts[-1] * len(self._numbers) > COLLECT_BYTES:
                self._numbers = None
        if self._wanted is not None and self._wanted not in self._whole_numbers:
            self._cells.append(block.cells[self._wanted])

    def survey(self) -> CsvScan:
        kinds = [column.decided() for column in self._seen]
        # Lines judged clean by the kinds assumed at the time are only clean if those kinds turned out right.
        clean = [packed if assumed == tuple(kinds) else None for assumed, packed in self._clean]
        return CsvScan(self._columns, kinds, self._size, self._starts, clean, self._repeats)

    def values(self, survey: CsvScan) -> dict[str, np.ndarray]:
        """The columns that were collected."""
        whole_columns = {index for index, kind in enumerate(survey.kinds) if kind == CellKind.INT}
        collected, numbers = {}, self._numbers or {}
        for index in sorted(whole_columns & numbers.keys()):
            collected[survey.columns[index]] = np.concatenate(numbers.pop(index))
        if self._wanted is not None and self._wanted not in self._whole_numbers:
            collected[self._columns[self._wanted]] = _values(self._cells, survey.kinds[self._wanted])
        return collected


def _clean(block: Block, classified: list[CellMasks], seen: list[_ColumnScan]) -> np.ndarray | None:
    """Which lines can be copied as bytes; None if lines are not simply the text between two line ends."""
    if block.quotes or b"\r" in block.content or len(block.lines) != len(block.cells[0]):
        return None
    clean = np.ones(len(block.cells[0]), dtype=bool)
    for masks, column in zip(classified, seen, strict=True):
        clean &= masks.printed_unchanged(column.likely())
    return np.packbits(clean)


def read_column(
    open_file: Callable[[], BinaryIO],
    survey: CsvScan,
    sep: str,
    name: str,
    function: Callable[[np.ndarray], np.ndarray] = lambda column: column,
) -> np.ndarray:
    """The values of one column, in another pass, or what a function makes of them, some rows at a time."""
    index = survey.columns.index(name)

    def read(block: Block) -> np.ndarray:
        block.repeats = survey.repeats
        return function(values(block.cells[index], survey.kinds[index]))

    pieces = [piece for _, piece in in_order(blocks(open_file, len(survey.columns), sep), read)]
    return np.concatenate(pieces) if pieces else function(np.array([], dtype=object))


def read_rows(open_file: Callable[[], BinaryIO], survey: CsvScan, sep: str, name: str, rows: np.ndarray) -> np.ndarray:
    """The values of one column in some rows, in another pass; no more of it is ever in memory."""
    index = survey.columns.index(name)
    ascending, order = np.unique(rows, return_inverse=True)
    choice = RowChoice(ascending, survey.starts)

    def read(block: Block) -> np.ndarray | None:
        chosen, _ = choice.of_block(block.number)
        if not len(chosen):
            return None
        block.repeats = survey.repeats
        return values(block.cells[index].take(pa.array(chosen)), survey.kinds[index])

    pieces = [piece for _, piece in in_order(blocks(open_file, len(survey.columns), sep), read) if piece is not None]
    return np.concatenate(pieces)[order]


def _narrow(numbers: np.ndarray) -> np.ndarray:
    """Return the numbers in the smallest type that holds them."""
    for kind in (np.int16, np.int32):
        if len(numbers) and np.iinfo(kind).min <= numbers.min() and numbers.max() <= np.iinfo(kind).max:
            return numbers.astype(kind)
    return numbers


def _values(pieces: list[pa.Array], kind: CellKind) -> np.ndarray:
    return np.concatenate([values(cells, kind) for cells in pieces]) if pieces else np.array([], dtype=object)


def _pandas_chunk_rows(columns: int) -> int:
    """How many rows pandas types at a time when it reads with `low_memory`, its default."""
    target, rows = (1 << 20) // columns, 1
    while rows * 2 < target:
        rows *= 2
    return rows
