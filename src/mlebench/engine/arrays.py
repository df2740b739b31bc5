"""Arrays in npy files, which may be larger than memory: read in place, written some rows at a time."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy

from mlebench.engine.byte_chunks import ByteChunks

LARGE_BYTES = 32 << 20  # files of at least this size stay on disk
BLOCK_BYTES = 16 << 20  # gathered at a time


def read_array(stream: BinaryIO) -> np.ndarray:
    """The array of an npy file, in memory."""
    return npy.read_array(stream)


def map_array(path: Path) -> np.ndarray:
    """The array of an npy file, mapped into memory: only what is asked for is read."""
    return np.load(path, mmap_mode="r")


def npy_pieces(array: np.ndarray, rows: np.ndarray | None = None) -> ByteChunks:
    """The bytes that numpy's `save` gives for an array, or for these rows of it in this order."""
    if array.dtype.hasobject:
        raise ValueError("an array of objects cannot be written")
    if rows is not None and len(rows) == 1:  # numpy may lay out a single row by column: let it decide
        array, rows = array[rows], None
    count = len(array) if rows is None else len(rows)
    shape, by_column = (count, *array.shape[1:]), rows is None and array.flags.fnc
    if by_column:
        array = array.T
        count = len(array)
    row_bytes = max(1, array.nbytes // max(1, len(array)))
    block_rows = max(1, BLOCK_BYTES // row_bytes)

    header = _header(array.dtype, shape, by_column)

    def make() -> Iterator[bytes]:
        yield header
        for start in range(0, count, block_rows):
            block = slice(start, start + block_rows)
            yield array[block if rows is None else rows[block]].tobytes()

    return ByteChunks(make, len(header) + count * row_bytes)


def _header(kind: np.dtype, shape: tuple[int, ...], by_column: bool) -> bytes:
    stream = io.BytesIO()
    described = {"descr": npy.dtype_to_descr(kind), "fortran_order": by_column, "shape": shape}
    npy.write_array_header_1_0(stream, described)
    return stream.getvalue()
