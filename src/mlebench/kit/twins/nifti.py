"""NIfTI files for twins: volumes of voxels, as medical programs exchange them."""

import struct

import numpy as np

# Offsets in the header, which is all zeros except for these fields.
_DIMENSIONS, _TYPE, _VOXEL_SIZES, _DATA, _UNITS, _TO_WORLD, _MAGIC = 40, 70, 76, 108, 123, 254, 344
_HEADER_SIZE, _DATA_OFFSET = 348, 352
_TYPES = {np.dtype(np.uint8): 2, np.dtype(np.int16): 4}
_MILLIMETRES = 2


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
