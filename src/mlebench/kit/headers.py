"""What the first bytes of a file reveal: the size of its content, without reading it."""

import io
import struct

import numpy as np

PNG_HEADER = 24  # bytes


def png_size(head: bytes) -> tuple[int, int]:
    """Width and height of a PNG image, from its first bytes."""
    if not head.startswith(b"\x89PNG\r\n\x1a\n") or len(head) < PNG_HEADER:
        raise ValueError("not a PNG image")
    width, height = struct.unpack_from(">II", head, 16)
    return width, height


def npy_shape(head: bytes) -> tuple[int, ...]:
    """The shape of the array in a npy file, from its first bytes."""
    stream = io.BytesIO(head)
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read_header(stream)[0]
