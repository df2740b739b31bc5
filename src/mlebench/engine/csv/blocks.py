"""Blocks: records of a large CSV file, some at a time. They end where records end and are worked on in parallel."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import BinaryIO, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import csv

from mlebench.engine import threads
from mlebench.engine.csv.cells import shortest_lengths, text_lengths
from mlebench.engine.csv.printing import bytes_of, offsets_of

BLOCK_BYTES = 2 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
Result = TypeVar("Result")


class NotStreamableError(Exception):
    """This file contains something that pandas has to decide about."""


class Block:
    """Some records of a file. Cells are parsed when they are first asked for."""

    def __init__(self, number: int, content: bytes, columns: int, sep: str, quotes: bool):
        self.number = number
        self.content = content
        self.quotes = quotes
        self.repeats: frozenset[int] = frozenset()
        self._columns = columns
        self._sep = sep
        self._cells: list[pa.Array] | None = None

    @property
    def size(self) -> int:
        return len(self.content)

    @property
    def cells(self) -> list[pa.Array]:
        """The block's columns, every cell as unquoted text; dictionary-encoded where texts repeat."""
        if self._cells is None:
            try:
                self._cells = self._parse(_repeating(self.repeats))
            except pa.ArrowInvalid as error:
                raise NotStreamableError(str(error)) from error
        return self._cells

    def read_whole_numbers(self, columns: frozenset[int]) -> bool:
        """Parse some columns as whole numbers; True if every number has its shortest spelling.

        No other spelling is as short as the printed one, so comparing total lengths is enough.
        """
        # Arrow reads 0xF as a number. Searching for one letter is far quicker than for two.
        if self.quotes or any(mark[-1:] in self.content and mark in self.content for mark in (b"\r", b"0x", b"0X")):
            return False
        try:
            cells = self._parse(_repeating(self.repeats - columns) | dict.fromkeys(columns, pa.int64()))
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
        self._cells = cells
        return True

    def _parse(self, types: dict[int, pa.DataType]) -> list[pa.Array]:
        names = [str(number) for number in range(self._columns)]
        kinds = {name: types.get(index, pa.string()) for index, name in enumerate(names)}
        table = csv.read_csv(
            pa.py_buffer(self.content),
            csv.ReadOptions(column_names=names, use_threads=False, block_size=max(len(self.content), 1)),
            csv.ParseOptions(delimiter=self._sep, newlines_in_values=self.quotes),
            csv.ConvertOptions(
                column_types=kinds, strings_can_be_null=False, null_values=[], check_utf8=not self.content.isascii()
            ),
        )
        # A block is a single chunk; combining would copy it.
        return [column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in table.columns]

    @cached_property
    def lines(self) -> pa.Array:
        """The block's lines with their ends; only valid where no cell contains a line end."""
        ends = np.flatnonzero(np.frombuffer(self.content, dtype=np.uint8) == ord("\n")) + 1
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        return pa.BinaryArray.from_buffers(
            pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(self.content)]
        )

    def part(self, rows: np.ndarray) -> "Block":
        """Some of the lines, as a separate block."""
        lines = self.lines.take(pa.array(rows))
        part = Block(self.number, bytes(bytes_of(lines)), self._columns, self._sep, self.quotes)
        part.repeats = self.repeats
        return part


def _repeating(columns: frozenset[int]) -> dict[int, pa.DataType]:
    return dict.fromkeys(columns, pa.dictionary(pa.int32(), pa.string()))


def blocks(open_file: Callable[[], BinaryIO], columns: int, sep: str) -> Iterator[Block]:
    """A file's records, without its header, in blocks; the same ones each time."""
    with open_file() as stream:
        incomplete, header, number = b"", True, 0
        while True:
            fresh = stream.read(BLOCK_BYTES)
            content = incomplete + fresh
            if not content:
                return
            if header and content.startswith(BYTE_ORDER_MARK):
                raise NotStreamableError("a byte order mark")
            if not fresh and not content.endswith(b"\n"):
                content += b"\n"
            end, quotes = _end_of_records(content)
            incomplete, content = content[end:], content[:end]
            if content and header:
                first = _first_record(content)
                check_block(Block(0, content[:first], columns, sep, b'"' in content[:first]), sep)
                content, header = content[first:], False
            if content:
                yield Block(number, content, columns, sep, quotes)
                number += 1
            if not fresh:
                if incomplete:
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
    quotes = np.flatnonzero(buffer == ord('"')) if block.quotes else np.empty(0, dtype=np.intp)
    starts = offsets_of(block.lines)[:-1]
    starts = starts[np.searchsorted(quotes, starts) % 2 == 0]  # drop line ends inside quotes: they are just text
    # When a pandas buffer ends inside a line's leading spaces, it loses them.
    if np.isin(buffer[starts], [ord(" "), ord("\t")]).any():
        raise NotStreamableError("a line that begins with spaces")
    if BYTE_ORDER_MARK in {bytes(content[start : start + 3]) for start in starts[buffer[starts] == BYTE_ORDER_MARK[0]]}:
        raise NotStreamableError("a byte order mark")
    if block.quotes:
        _check_quotes(buffer, quotes, ord(sep))


def _check_quotes(buffer: np.ndarray, quotes: np.ndarray, sep: int) -> None:
    """A quote opens a cell, closes one, or is doubled inside one; anything else is left to pandas."""
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


@contextmanager
def _frugal_memory() -> Iterator[None]:
    """Arrow's own allocator keeps what is freed, a third more than is in use here; the system's does not."""
    usual = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(usual)


def in_order(source: Iterator[Block], work: Callable[[Block], Result]) -> Iterator[tuple[Block, Result]]:
    """Work on several blocks at a time and yield the results in file order."""
    with _frugal_memory():
        yield from threads.in_order(source, work)
