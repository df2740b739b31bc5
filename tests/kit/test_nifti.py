"""NIfTI files, parsed by the standard's offsets."""

import struct

import numpy as np
import pytest

from mlebench.kit.twins import nifti_bytes


@pytest.mark.parametrize(("kind", "code", "bits"), [(np.uint8, 2, 8), (np.int16, 4, 16)])
def test_header_and_voxels_are_where_the_standard_says(kind: type, code: int, bits: int) -> None:
    voxels = np.arange(24).reshape(2, 3, 4).astype(kind)
    content = nifti_bytes(voxels)
    assert struct.unpack_from("<i", content, 0) == (348,)
    assert struct.unpack_from("<8h", content, 40) == (3, 2, 3, 4, 1, 1, 1, 1)
    assert struct.unpack_from("<hh", content, 70) == (code, bits)
    assert struct.unpack_from("<4f", content, 76)[1:] == (1, 1, 1)
    assert struct.unpack_from("<fff", content, 108) == (352, 1, 0)
    assert content[123] == 2
    assert struct.unpack_from("<hh", content, 252) == (0, 1)
    assert np.array_equal(np.frombuffer(content, "<f4", 12, 280).reshape(3, 4), np.eye(3, 4))
    assert content[344:348] == b"n+1\0"
    data = np.frombuffer(content, np.dtype(kind).newbyteorder("<"), offset=352)
    assert np.array_equal(data.reshape(voxels.shape, order="F"), voxels)
    assert data[1] == voxels[1, 0, 0]
