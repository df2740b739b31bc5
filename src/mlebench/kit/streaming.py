"""Large CSV files, block by block: what pandas would make of them, without holding them in memory.

A first pass finds the kind of every column and whether the file is one that can be split and printed back safely; what
cannot be decided safely is left to pandas. Blocks end where records end; two or more are worked on at once.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import csv

from mlebench.kit.cells import (
    NOTHING,
    NUMBER,
    Kind,
    Look,
    look_at,
    repeat_themselves,
    shortest_lengths,
    text_lengths,
    values,
    words,
)

BLOCK_BYTES = 4 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
WORKERS = 2
Result = TypeVar("Result")


class NotStreamableError(Exception):
    """This file holds something that pandas has to decide about."""


@dataclass(frozen=True)
class Profile:
    """What the first pass finds out about a file."""

    columns: list[str]
    kinds: list[Kind]
    size: int  # in bytes, without the header
    starts: list[int]  # the number of each block's first row, and at the end the number of rows
    clean: list[np.ndarray | None]  # for each block, packed: which lines pandas would write back as they stand
    repeats: frozenset[int] = frozenset()  # columns with few distinct texts

    @property
    def rows(self) -> int:
        return self.starts[-1]


@dataclass
class _Column:
    """What has been seen of one column; gaps between text cells tell whether pandas would type a chunk as numbers."""

    chunk_rows: int
    kinds: Kind = NOTHING
    rows: int = 0
    last_text: int = -1
    widest_gap: int = 0
    huge_before_text: bool = False

    def add(self, look: Look, rows: int) -> None:
        if not rows:
            return
        if Kind.HUGE in look.kinds:
            self.huge_before_text |= self._is_huge_before_text(look)
        if Kind.TEXT in look.kinds:
            places = np.flatnonzero(look.text) if isinstance(look.text, np.ndarray) else np.array([0, rows - 1])
            gaps = np.diff(places, prepend=self.last_text - self.rows)
            self.widest_gap = max(
                self.widest_gap, int(gaps.max()) if isinstance(look.text, np.ndarray) else int(gaps[0])
            )
            self.last_text = self.rows + int(places[-1])
        self.kinds |= look.kinds
        self.rows += rows

    def likely(self) -> Kind:
        """The column's kind as far as it is known."""
        return Kind.TEXT if Kind.TEXT in self.kinds else self.kinds

    def _is_huge_before_text(self, look: Look) -> bool:
        """Whether pandas meets a huge number in a chunk before any text; then even gaps are read in another way."""
        huge, texts = np.flatnonzero(look.huge) + self.rows, np.flatnonzero(look.text) + self.rows
        latest_text = np.concatenate([[self.last_text], texts])[np.searchsorted(texts, huge)]
        return bool((latest_text < huge // self.chunk_rows * self.chunk_rows).any())

    def decided(self) -> Kind:
        """The column's kind; pandas infers types chunk by chunk, so text and numbers must not come in separate ones."""
        kinds = self.kinds
        if Kind.HUGE in kinds and (Kind.TEXT not in kinds or self.huge_before_text):
            raise NotStreamableError("a number of many digits")
        if Kind.TEXT in kinds:
            last_chunk = (self.rows - 1) // self.chunk_rows * self.chunk_rows
            if kinds & (NUMBER | Kind.BOOL | Kind.ODD) and (
                self.widest_gap >= self.chunk_rows or self.last_text < last_chunk
            ):
                raise NotStreamableError("numbers and text far apart in one column")
            return Kind.TEXT
        if Kind.ODD in kinds or (Kind.BOOL in kinds and kinds & NUMBER):
            raise NotStreamableError("numbers in an unusual spelling")
        return Kind.INT if kinds == Kind.INT else kinds


def profile(
    open_file: Callable[[], BinaryIO], columns: list[str], sep: str, as_text: Sequence[str], collect: Sequence[str] = ()
) -> tuple[Profile, dict[str, np.ndarray]]:
    """The first pass: kinds of all columns and, on request, the values of some, while they are at hand."""
    if len(columns) < 2:
        raise NotStreamableError("one column: an empty cell is an empty line")
    if len(sep) != 1 or not sep.isascii():
        raise NotStreamableError("an unusual separator")
    seen = [_Column(_pandas_chunk_rows(len(columns))) for _ in columns]
    wanted: dict[str, list[pa.Array]] = {name: [] for name in collect}
    size, starts, clean = 0, [0], []

    whole_numbers: set[int] = set()  # by what the first block holds; guesses that later blocks are tried with
    repeats: set[int] = set()

    def look(block: "Block") -> list[Look]:
        check_block(block, sep)
        block.repeats = frozenset(repeats)
        if whole_numbers and block.read_whole_numbers(frozenset(whole_numbers)):
            return [
                Look(Kind.INT, whole=True) if pa.types.is_integer(cells.type) else look_at(cells, column.kinds)
                for column, cells in zip(seen, block.cells, strict=True)
            ]
        return [
            Look(Kind.TEXT, text=True, word=words(cells)) if name in as_text else look_at(cells, column.kinds)
            for name, column, cells in zip(columns, seen, block.cells, strict=True)
        ]

    for block, looks in in_order(blocks(open_file, len(columns), sep), look):
        rows = len(block.cells[0])
        if block.number == 0 and not as_text:
            whole_numbers |= {place for place, found in enumerate(looks) if found.kinds == Kind.INT}
            repeats |= {place for place, cells in enumerate(block.cells) if repeat_themselves(cells)}
        for column, found in zip(seen, looks, strict=True):
            column.add(found, rows)
        size += block.size
        starts.append(starts[-1] + rows)
        clean.append((tuple(column.likely() for column in seen), _clean(block, looks, seen)))
        for name, kept in wanted.items():
            kept.append(block.cells[columns.index(name)])
    kinds = [column.decided() for column in seen]
    # What was clean for the kinds known at that time is still so only if they turned out to be right.
    still = [packed if assumed == tuple(kinds) else None for assumed, packed in clean]
    made = Profile(columns, kinds, size, starts, still, frozenset(repeats))
    return made, {name: _values(kept, kinds[columns.index(name)]) for name, kept in wanted.items()}


def _clean(block: "Block", looks: list[Look], seen: list[_Column]) -> np.ndarray | None:
    """Which lines can be copied as bytes; None where lines are not simply what lies between two line ends."""
    if block.quotes or b"\r" in block.content or len(block.lines) != len(block.cells[0]):
        return None
    clean = np.ones(len(block.cells[0]), dtype=bool)
    for look, column in zip(looks, seen, strict=True):
        clean &= look.stands(column.likely())
    return np.packbits(clean)


def read_column(open_file: Callable[[], BinaryIO], made: Profile, sep: str, name: str) -> np.ndarray:
    """The values of one column, in another pass."""
    place = made.columns.index(name)

    def look(block: Block) -> np.ndarray:
        block.repeats = made.repeats
        return values(block.cells[place], made.kinds[place])

    pieces = [piece for _, piece in in_order(blocks(open_file, len(made.columns), sep), look)]
    return np.concatenate(pieces) if pieces else np.array([], dtype=object)


def _values(pieces: list[pa.Array], kind: Kind) -> np.ndarray:
    return np.concatenate([values(cells, kind) for cells in pieces]) if pieces else np.array([], dtype=object)


def _pandas_chunk_rows(columns: int) -> int:
    """How many rows pandas types at a time when it reads with `low_memory`, its default."""
    target, rows = (1 << 20) // columns, 1
    while rows * 2 < target:
        rows *= 2
    return rows


class Block:
    """Some records of a file. Cells are parsed when they are first asked for."""

    def __init__(self, number: int, content: bytes, columns: int, sep: str, quotes: bool):
        self.number = number
        self.content = content
        self.quotes = quotes
        self.repeats: frozenset[int] = frozenset()
        self._columns = columns
        self._sep = sep

    @property
    def size(self) -> int:
        return len(self.content)

    @cached_property
    def cells(self) -> list[pa.Array]:
        """The block's columns, every cell as text without its quotes; where texts repeat, as a dictionary."""
        try:
            return self._parse(_repeating(self.repeats))
        except pa.ArrowInvalid as error:
            raise NotStreamableError(str(error)) from error

    def read_whole_numbers(self, places: frozenset[int]) -> bool:
        """Parse some columns as whole numbers; True when each is written in the shortest way, so that none is odd.

        No spelling of a number is as short as the one that is printed, so it is enough to add up lengths.
        """
        if self.quotes or b"\r" in self.content:
            return False
        try:
            cells = self._parse(_repeating(self.repeats - places) | dict.fromkeys(places, pa.int64()))
        except pa.ArrowInvalid:
            return False
        if len(self.lines) != len(cells[0]):
            return False
        lengths = np.full(len(cells[0]), self._columns, dtype=np.int64)
        for column in cells:
            number = pa.types.is_integer(column.type)
            lengths += shortest_lengths(column.to_numpy()) if number else text_lengths(column)
        if not np.array_equal(lengths, np.diff(offsets_of(self.lines))):
            return False
        self.__dict__["cells"] = cells
        return True

    def _parse(self, types: dict[int, pa.DataType]) -> list[pa.Array]:
        names = [str(number) for number in range(self._columns)]
        kinds = {name: types.get(place, pa.string()) for place, name in enumerate(names)}
        table = csv.read_csv(
            pa.py_buffer(self.content),
            csv.ReadOptions(column_names=names, use_threads=False, block_size=max(len(self.content), 1)),
            csv.ParseOptions(delimiter=self._sep, newlines_in_values=self.quotes),
            csv.ConvertOptions(column_types=kinds, strings_can_be_null=False, null_values=[]),
        )
        return [table.column(name).combine_chunks() for name in names]

    @cached_property
    def lines(self) -> pa.Array:
        """The block's lines with their ends; only where no line end stands inside a cell."""
        ends = np.flatnonzero(np.frombuffer(self.content, dtype=np.uint8) == ord("\n")) + 1
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        return pa.BinaryArray.from_buffers(
            pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(self.content)]
        )

    def part(self, rows: np.ndarray) -> "Block":
        """Some of the lines, as a block of their own."""
        lines = self.lines.take(pa.array(rows))
        part = Block(self.number, bytes(bytes_of(lines)), self._columns, self._sep, self.quotes)
        part.repeats = self.repeats
        return part


def _repeating(places: frozenset[int]) -> dict[int, pa.DataType]:
    return dict.fromkeys(places, pa.dictionary(pa.int32(), pa.string()))


def bytes_of(lines: pa.Array) -> memoryview:
    """The text of all lines, one after the other."""
    offsets = offsets_of(lines)
    return memoryview(lines.buffers()[2])[offsets[0] : offsets[-1]] if len(lines) else memoryview(b"")


def offsets_of(lines: pa.Array) -> np.ndarray:
    large = pa.types.is_large_binary(lines.type) or pa.types.is_large_string(lines.type)
    offsets = np.frombuffer(lines.buffers()[1], dtype=np.int64 if large else np.int32)
    return offsets[lines.offset : lines.offset + len(lines) + 1]


def blocks(open_file: Callable[[], BinaryIO], columns: int, sep: str) -> Iterator[Block]:
    """A file's records, without its header, in blocks; the same ones each time."""
    with open_file() as stream:
        left, header, number = b"", True, 0
        while True:
            fresh = stream.read(BLOCK_BYTES)
            content = left + fresh
            if not content:
                return
            if header and content.startswith(BYTE_ORDER_MARK):
                raise NotStreamableError("a byte order mark")
            if not fresh and not content.endswith(b"\n"):
                content += b"\n"
            end, quotes = _end_of_records(content)
            left, content = content[end:], content[:end]
            if content and header:
                content, header = content[_first_record(content) :], False
            if content:
                yield Block(number, content, columns, sep, quotes)
                number += 1
            if not fresh:
                if left:
                    raise NotStreamableError("a quote that is never closed")
                return


def _end_of_records(content: bytes) -> tuple[int, bool]:
    """Where the last whole record ends, and whether there are quotes: inside quotes a line end is just text."""
    end = content.rfind(b"\n") + 1
    if b'"' not in content:
        return end, False
    quotes = np.count_nonzero(np.frombuffer(content, dtype=np.uint8) == ord('"')) - content.count(b'"', end)
    while end and quotes % 2:
        before = content.rfind(b"\n", 0, end - 1) + 1
        quotes -= content.count(b'"', before, end)
        end = before
    return end, True


def check_block(block: Block, sep: str) -> None:
    """Refuse what parsers read differently."""
    content = block.content
    if b"\x00" in content:
        raise NotStreamableError("a NUL character")
    if b"\r" in content and content.count(b"\r") != content.count(b"\r\n"):
        raise NotStreamableError("a carriage return by itself")
    buffer = np.frombuffer(content, dtype=np.uint8)
    starts = offsets_of(block.lines)[:-1]
    # Where pandas reads on in the middle of a line's leading spaces, it loses them.
    if np.isin(buffer[starts], [ord(" "), ord("\t")]).any():
        raise NotStreamableError("a line that begins with spaces")
    if BYTE_ORDER_MARK in {bytes(content[start : start + 3]) for start in starts[buffer[starts] == BYTE_ORDER_MARK[0]]}:
        raise NotStreamableError("a byte order mark")
    if block.quotes:
        _check_quotes(buffer, np.flatnonzero(buffer == ord('"')), ord(sep))


def _check_quotes(buffer: np.ndarray, quotes: np.ndarray, sep: int) -> None:
    """A quote opens a cell or closes one, or stands doubled inside; anything else is for pandas."""
    before = buffer[np.maximum(quotes[0::2], 1) - 1]
    after = buffer[np.minimum(quotes[1::2] + 1, len(buffer) - 1)]
    may_open, may_follow = np.zeros(256, dtype=bool), np.zeros(256, dtype=bool)
    may_open[[sep, ord("\n"), ord('"')]] = True
    may_follow[[sep, ord("\n"), ord("\r"), ord('"')]] = True
    if not (may_open[before] | (quotes[0::2] == 0)).all() or not may_follow[after].all():
        raise NotStreamableError("a quote in the middle of a cell")


def _first_record(content: bytes) -> int:
    line = content.split(b"\n", 1)[0]
    if line.count(b'"') % 2 or not line.strip():
        raise NotStreamableError("an unusual header")
    return len(line) + 1


def in_order(source: Iterator[Block], work: Callable[[Block], Result]) -> Iterator[tuple[Block, Result]]:
    """Do work on blocks, several at a time, and give the results in the order of the file."""
    with ThreadPoolExecutor(WORKERS) as pool:
        pending: deque[tuple[Block, Future[Result]]] = deque()
        try:
            for block in source:
                pending.append((block, pool.submit(work, block)))
                if len(pending) > WORKERS:
                    block, future = pending.popleft()
                    yield block, future.result()
            while pending:
                block, future = pending.popleft()
                yield block, future.result()
        finally:
            for _, future in pending:
                future.cancel()
