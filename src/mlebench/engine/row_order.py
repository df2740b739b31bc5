"""Where the rows of a table go as they arrive block by block: straight out, or through buckets on disk.

Rows that keep the order of the blocks are written as they arrive. Rows in another order (a permutation split) are first
sorted into buckets, each of which is then put in order in memory.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from mlebench.engine.csv.printing import bytes_of, offsets_of
from mlebench.engine.tables import Writable

BUCKET_BYTES = 16 << 20
MOST_BUCKETS = 256  # each is an open file
# How long it takes to put a bucket in order and write it, compared with reading and printing its lines.
ORDERING = 2 / 3


class PlacedLines(NamedTuple):
    """What a table gets from one block, row by row, and where these rows go in the table."""

    lines: pa.Array
    positions: np.ndarray


class RowChoice:
    """Which rows of each block a table takes; no row is taken twice."""

    def __init__(self, rows: np.ndarray | None, starts: Sequence[int]):
        self._rows = rows
        self._starts = np.asarray(starts, dtype=np.int64)
        self.count = int(self._starts[-1]) if rows is None else len(rows)
        if rows is not None and len(rows) and rows.max() >= starts[-1]:
            raise IndexError(f"there is no row {rows.max()} in a file of {starts[-1]}")
        self.ascending = rows is None or bool((np.diff(rows) > 0).all())
        self.in_block_order = self.ascending or self._keeps_blocks_in_order()
        self._positions = None if self.ascending else _positions_of_rows(rows, int(self._starts[-1]))

    def of_block(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows, counted within the block, and their places in the table; in the order of these places."""
        start, end = self._starts[number : number + 2]
        if self._positions is not None:
            positions = self._positions[start:end]
            rows = np.flatnonzero(positions >= 0)
            rows = rows[np.argsort(positions[rows])]
            return rows, positions[rows]
        if self._rows is None:
            return np.arange(end - start), np.arange(start, end)
        first, last = np.searchsorted(self._rows, [start, end])
        return self._rows[first:last] - start, np.arange(first, last)

    def block_rows(self, number: int) -> int:
        return int(self._starts[number + 1] - self._starts[number])

    def _keeps_blocks_in_order(self) -> bool:
        rows = np.empty(0) if self._rows is None else self._rows
        for sample in (rows[:4096], rows):  # in a permutation the first rows are enough
            if (np.diff(np.searchsorted(self._starts, sample, side="right")) < 0).any():
                return False
        return True


def row_writer(
    choice: RowChoice, stream: Writable, row_bytes: float, stack: ExitStack, scratch: Path
) -> "DirectWriter | BucketWriter":
    return (
        DirectWriter(stream) if choice.in_block_order else BucketWriter(stream, choice.count, row_bytes, stack, scratch)
    )


class DirectWriter:
    """Writer for rows already in output order."""

    remaining_work = 0.0  # nothing is left to do once the last row has arrived

    def __init__(self, stream: Writable):
        self._stream = stream

    def add(self, part: PlacedLines) -> None:
        self._stream.write(bytes_of(part.lines))

    def finish(self, advance: Callable[[float], None]) -> None:
        """Everything is already written."""


class BucketWriter:
    """Rows sorted into ranges of their final places, on disk until all have arrived."""

    def __init__(self, stream: Writable, rows: int, row_bytes: float, stack: ExitStack, scratch: Path):
        self._stream = stream
        bucket_rows = max(1, int(BUCKET_BYTES / max(row_bytes, 1)), -(-rows // MOST_BUCKETS))
        self._starts = np.arange(0, rows, bucket_rows)
        self.remaining_work = ORDERING * rows * row_bytes  # work left once the last row has arrived, in bytes read
        self._files = [stack.enter_context(TemporaryFile(dir=scratch)) for _ in self._starts]  # noqa: SIM115
        self._positions: list[list[np.ndarray]] = [[] for _ in self._starts]
        self._lengths: list[list[np.ndarray]] = [[] for _ in self._starts]

    def add(self, part: PlacedLines) -> None:
        positions, offsets = part.positions, offsets_of(part.lines)
        content = memoryview(part.lines.buffers()[2])
        for bucket, (first, last) in enumerate(pairwise([*np.searchsorted(positions, self._starts), len(positions)])):
            if first < last:
                self._files[bucket].write(content[offsets[first] : offsets[last]])
                self._positions[bucket].append(positions[first:last].astype(np.int32))
                self._lengths[bucket].append(np.diff(offsets[first : last + 1]).astype(np.int32))

    def finish(self, advance: Callable[[float], None]) -> None:
        """Write all rows; `advance` is told about the work done."""
        with ThreadPoolExecutor(1) as pool:  # one bucket is put in order while the one before is written
            waiting = pool.submit(self._ordered, 0)
            for bucket in range(len(self._files)):
                ready = waiting.result()
                if bucket + 1 < len(self._files):
                    waiting = pool.submit(self._ordered, bucket + 1)
                self._stream.write(bytes_of(ready))
                advance(self.remaining_work / len(self._files))

    def _ordered(self, bucket: int) -> pa.Array:
        file = self._files[bucket]
        file.seek(0)
        content = file.read()
        file.truncate(0)
        positions, lengths = np.concatenate(self._positions[bucket]), np.concatenate(self._lengths[bucket])
        self._positions[bucket], self._lengths[bucket] = [], []
        lines = binary_array(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), content)
        order = np.empty(len(positions), dtype=np.int64)
        order[positions - self._starts[bucket]] = np.arange(len(positions))
        return lines.take(pa.array(order))


def binary_array(offsets: np.ndarray, content: bytes) -> pa.Array:
    """Pieces of content, from each offset to the next, without a copy."""
    buffers = [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(content)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def _positions_of_rows(rows: np.ndarray | None, count: int) -> np.ndarray:
    """For each row of the file its place in the table, or -1."""
    positions = np.full(count, -1, dtype=np.int32 if count < 1 << 31 else np.int64)
    if rows is not None:
        positions[rows] = np.arange(len(rows), dtype=positions.dtype)
    return positions
