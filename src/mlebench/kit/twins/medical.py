"""Medical images for twins.

DICOM files have explicit value representations, little endian, and pixels without compression. NIfTI files hold volumes
of voxels.
"""

import struct
from collections.abc import Mapping

import numpy as np

_CLASS, _INSTANCE = 0x00080016, 0x00080018
_META_LENGTH, _META_VERSION, _META_CLASS, _META_INSTANCE, _META_SYNTAX = (0x00020000 + n for n in (0, 1, 2, 3, 0x10))
_EXPLICIT_LITTLE_ENDIAN = "1.2.840.10008.1.2.1"
_LONG = ("OB", "OW")  # kinds whose length has four bytes
_NUMBERS = {"US": "<H", "UL": "<I"}

# Offsets in the header of a NIfTI file, which is all zeros except for these fields.
_DIMENSIONS, _TYPE, _VOXEL_SIZES, _DATA, _UNITS, _TO_WORLD, _MAGIC = 40, 70, 76, 108, 123, 254, 344
_HEADER_SIZE, _DATA_OFFSET = 348, 352
_TYPES = {np.dtype(np.uint8): 2, np.dtype(np.int16): 4}
_MILLIMETRES = 2

Elements = Mapping[int, tuple[str, str | int | bytes]]


def dicom_bytes(pixels: np.ndarray, elements: Elements) -> bytes:
    """A DICOM file of 8- or 16-bit pixels, grey (height, width) or RGB (height, width, 3).

    Elements map a tag to a kind and a value: `0x00100020: ("LO", "00002")` is a patient's id. Those that describe the
    pixels are added; the UIDs of the image's class (0x00080016) and of the image (0x00080018) must be given.
    """
    height, width, *channels = pixels.shape
    bits = 8 * pixels.dtype.itemsize
    data: Elements = {
        0x00280002: ("US", 3 if channels else 1),
        0x00280004: ("CS", "RGB" if channels else "MONOCHROME2"),
        **({0x00280006: ("US", 0)} if channels else {}),  # the three values of a pixel are adjacent
        0x00280010: ("US", height),
        0x00280011: ("US", width),
        0x00280100: ("US", bits),
        0x00280101: ("US", bits),
        0x00280102: ("US", bits - 1),
        0x00280103: ("US", 0),
        0x7FE00010: ("OW", pixels.astype(f"<u{bits // 8}").tobytes()),
        **elements,
    }
    meta = _encode(
        {
            _META_VERSION: ("OB", b"\x00\x01"),
            _META_CLASS: elements[_CLASS],
            _META_INSTANCE: elements[_INSTANCE],
            _META_SYNTAX: ("UI", _EXPLICIT_LITTLE_ENDIAN),
        }
    )
    return bytes(128) + b"DICM" + _encode({_META_LENGTH: ("UL", len(meta))}) + meta + _encode(data)


def _encode(elements: Elements) -> bytes:
    """Elements in the order of their tags."""
    pieces = []
    for tag, (kind, value) in sorted(elements.items()):
        if isinstance(value, int):
            content = struct.pack(_NUMBERS[kind], value)
        else:
            content = value.encode("ascii") if isinstance(value, str) else value
            content += b"" if len(content) % 2 == 0 else b" " if kind not in ("UI", *_LONG) else b"\x00"
        length = struct.pack("<2xI" if kind in _LONG else "<H", len(content))
        pieces += struct.pack("<HH", tag >> 16, tag & 0xFFFF), kind.encode("ascii"), length, content
    return b"".join(pieces)


def nifti_bytes(voxels: np.ndarray) -> bytes:
    """A NIfTI-1 file (`.nii`) of 8- or 16-bit voxels (left to right, back to front, bottom to top), each of a mm³."""
    header = bytearray(_DATA_OFFSET)
    struct.pack_into("<i", header, 0, _HEADER_SIZE)
    struct.pack_into("<8h", header, _DIMENSIONS, voxels.ndim, *voxels.shape, *[1] * (7 - voxels.ndim))
    struct.pack_into("<hh", header, _TYPE, _TYPES[voxels.dtype], 8 * voxels.dtype.itemsize)
    struct.pack_into("<8f", header, _VOXEL_SIZES, *[1] * 8)
    struct.pack_into("<ff", header, _DATA, _DATA_OFFSET, 1)  # values are not scaled
    struct.pack_into("<b", header, _UNITS, _MILLIMETRES)
    struct.pack_into("<h24x12f", header, _TO_WORLD, 1, *np.eye(3, 4).ravel())
    struct.pack_into("<4s", header, _MAGIC, b"n+1")
    return bytes(header) + voxels.astype(voxels.dtype.newbyteorder("<")).tobytes(order="F")
