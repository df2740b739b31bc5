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

from mlebench.kit.cells import NOTHING, NUMBER, Kind, Look, look_at, values, words

BLOCK_BYTES = 4 << 20
# pandas reads this many characters at a time; spaces at the start of a line that lie across such an end, it loses.
PANDAS_CHARACTERS = 1 << 18
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

    def look(block: "Block") -> list[Look]:
        return [
            Look(Kind.TEXT, text=True, word=words(cells)) if name in as_text else look_at(cells, column.kinds)
            for name, column, cells in zip(columns, seen, block.cells, strict=True)
        ]

    for block, looks in in_order(blocks(open_file, len(columns), sep), look):
        rows = len(block.cells[0])
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
    made = Profile(columns, kinds, size, starts, still)
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
    kept = [
        block.cells[place]
        for block, _ in in_order(blocks(open_file, len(made.columns), sep), lambda block: block.cells)
    ]
    return _values(kept, made.kinds[place])


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

    def __init__(self, number: int, content: bytes | memoryview, columns: int, sep: str, quotes: bool):
        self.number = number
        self.content = content
        self.quotes = quotes
        self._columns = columns
        self._sep = sep

    @property
    def size(self) -> int:
        return len(self.content)

    @cached_property
    def cells(self) -> list[pa.Array]:
        """The block's columns, every cell as text without its quotes."""
        names = [str(number) for number in range(self._columns)]
        try:
            table = csv.read_csv(
                pa.py_buffer(self.content),
                csv.ReadOptions(column_names=names, use_threads=False, block_size=max(len(self.content), 1)),
                csv.ParseOptions(delimiter=self._sep, newlines_in_values=self.quotes),
                csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
            )
        except pa.ArrowInvalid as error:
            raise NotStreamableError(str(error)) from error
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
        return Block(self.number, bytes_of(lines), self._columns, self._sep, self.quotes)


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
        left, header, number, position = b"", True, 0, 0
        while True:
            fresh = stream.read(BLOCK_BYTES)
            content = left + fresh
            if not content:
                return
            if content.startswith(BYTE_ORDER_MARK) or b"\n" + BYTE_ORDER_MARK in content:
                raise NotStreamableError("a byte order mark")
            if not fresh and not content.endswith(b"\n"):
                content += b"\n"
            end, quotes = _end_of_records(content, sep)
            left, content = content[end:], content[:end]
            position = _check_line_starts(content, position)
            if content and header:
                content, header = content[_first_record(content) :], False
            if content:
                yield Block(number, content, columns, sep, quotes)
                number += 1
            if not fresh:
                if left:
                    raise NotStreamableError("a quote that is never closed")
                return


def _end_of_records(content: bytes, sep: str) -> tuple[int, bool]:
    """Where the last whole record ends, and whether there are quotes; refuses what parsers read differently."""
    if b"\x00" in content:
        raise NotStreamableError("a NUL character")
    if b"\r" in content and content.count(b"\r") - content.endswith(b"\r") != content.count(b"\r\n"):
        raise NotStreamableError("a carriage return by itself")
    if b'"' not in content:
        return content.rfind(b"\n") + 1, False
    buffer = np.frombuffer(content, dtype=np.uint8)
    quotes = np.flatnonzero(buffer == ord('"'))
    newlines = np.flatnonzero(buffer == ord("\n"))
    ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    end = int(ends[-1]) + 1 if len(ends) else 0
    _check_quotes(buffer[:end], quotes[: np.searchsorted(quotes, end)], ord(sep))
    return end, True


def _check_quotes(buffer: np.ndarray, quotes: np.ndarray, sep: int) -> None:
    """A quote opens a cell or closes one, or stands doubled inside; anything else is for pandas."""
    before = buffer[np.maximum(quotes[0::2], 1) - 1]
    after = buffer[np.minimum(quotes[1::2] + 1, len(buffer) - 1)]
    opens = np.isin(before, [sep, ord("\n"), ord('"')]) | (quotes[0::2] == 0)
    if not opens.all() or not np.isin(after, [sep, ord("\n"), ord("\r"), ord('"')]).all():
        raise NotStreamableError("a quote in the middle of a cell")


def _check_line_starts(content: bytes, position: int) -> int:
    """Refuse a line that pandas would cut; `position` counts the characters before, and with the content after."""
    after = position + (len(content) if content.isascii() else len(content.decode("utf-8", "replace")))
    if not content.startswith((b" ", b"\t")) and b"\n " not in content and b"\n\t" not in content:
        return after
    text = content.decode("utf-8", "replace")
    for end in range(-position % PANDAS_CHARACTERS, len(text), PANDAS_CHARACTERS):
        line = text[text.rfind("\n", 0, end) + 1 : end]
        if line and not line.strip(" \t"):
            raise NotStreamableError("a line that begins with spaces where pandas reads on")
    return after


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
