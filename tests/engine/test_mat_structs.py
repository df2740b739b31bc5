"""Fields are cut out of MAT files that scipy and our twins write; scipy reads what is left."""

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import loadmat, savemat

from mlebench.core.errors import RawDataError
from mlebench.engine.records.matlab import without_struct_field
from mlebench.kit import open_raw
from mlebench.kit.twins import mat_bytes

WIDTHS = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8, 16: 1, 17: 2, 18: 4}  # bytes of a value
MATRIX = 14

NUMBERS = st.floats(allow_nan=False) | st.integers(-99, 99)
TEXTS = st.text("abcé", min_size=1, max_size=9)
ROWS = st.lists(st.fixed_dictionaries({"Name": TEXTS, "Begin": NUMBERS}), min_size=2, max_size=4)
VIDEOS = st.fixed_dictionaries(
    {"NumFrames": NUMBERS, "Labels": ROWS, "Frames": ROWS}, optional={"Kind": TEXTS, "Deep": st.just({"x": {"y": 1.5}})}
)


@given(VIDEOS, NUMBERS, st.booleans(), st.sampled_from(["NumFrames", "Labels", "Frames"]))
def test_one_field_is_cut_out_and_all_else_stays(
    video: dict[str, Any], other: float, compressed: bool, field: str
) -> None:
    stream = io.BytesIO()
    savemat(stream, {"Before": other, "Video": _as_saved(video), "After": {"Labels": other}}, do_compression=compressed)
    _assert_cut(stream.getvalue(), field)


@given(VIDEOS, NUMBERS, st.booleans(), st.sampled_from(["NumFrames", "Labels", "Frames"]))
def test_files_of_twins_in_both_byte_orders(video: dict[str, Any], other: float, swapped: bool, field: str) -> None:
    content = mat_bytes({"Before": other, "Video": video, "After": {"Labels": other}})
    _assert_cut(_in_the_other_order(content) if swapped else content, field)


def test_every_struct_of_an_array_loses_the_field() -> None:
    rows = [{"Name": "basta", "Begin": 1.0, "End": 2.0}, {"Name": "ok", "Begin": 3.0, "End": 4.0}]
    content = without_struct_field(mat_bytes({"Labels": rows}), "Labels", "Name")
    read = loadmat(io.BytesIO(content), simplify_cells=True)["Labels"]
    assert [dict(row) for row in read] == [{"Begin": 1.0, "End": 2.0}, {"Begin": 3.0, "End": 4.0}]
    assert "basta".encode("utf-16-le") not in content


def test_the_only_field_leaves_a_struct_without_fields() -> None:
    content = without_struct_field(mat_bytes({"Video": {"Labels": "basta"}, "n": 1}), "Video", "Labels")
    read = loadmat(io.BytesIO(content))
    assert read["Video"].shape == (1, 1)
    assert not read["Video"].dtype.names
    assert read["n"] == 1


WRONG = {
    "no field Labels": mat_bytes({"Video": {"NumFrames": 1}}),
    "no variable Video": mat_bytes({"Labels": {"Labels": 1}}),
    "not a struct": mat_bytes({"Video": "Labels"}),
    "middle of an element": mat_bytes({"Video": {"Labels": 1}})[:-9],
    "not a MAT file of level 5": b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM",
    "objects of Matlab's own": mat_bytes({"Video": {"Labels": 1}}).replace(b" " * 8 + b"\x00\x01IM", b"\x80" + b"\0" * 7
                                                                         + b"\x00\x01IM"),
}  # fmt: skip


@pytest.mark.parametrize("reason", WRONG)
def test_a_file_that_cannot_be_cut_is_named(reason: str, tmp_path: Path) -> None:
    (tmp_path / "a.mat").write_bytes(WRONG[reason])
    with open_raw(tmp_path) as raw, pytest.raises(RawDataError, match=rf"a\.mat cannot be read .*{reason}"):
        list(raw.without_struct_field("a.mat", "Video", "Labels"))


def _assert_cut(content: bytes, field: str) -> None:
    before = loadmat(io.BytesIO(content), simplify_cells=True)
    after = loadmat(io.BytesIO(without_struct_field(content, "Video", field)), simplify_cells=True)
    del before["Video"][field]
    np.testing.assert_equal(after, before)


def _as_saved(video: dict[str, Any]) -> dict[str, Any]:
    """Rows of structs as scipy wants them."""
    rows = {name: value for name, value in video.items() if isinstance(value, list)}
    arrays = {
        name: np.array([tuple(row.values()) for row in value], dtype=[("Name", object), ("Begin", object)])
        for name, value in rows.items()
    }
    return video | arrays


def _in_the_other_order(content: bytes) -> bytes:
    """A little-endian file as a big-endian one."""
    return content[:124] + b"\x01\x00MI" + _swapped(content[128:])


def _swapped(elements: bytes) -> bytes:
    pieces, start = [], 0
    while start < len(elements):
        kind, size = struct.unpack_from("<II", elements, start)
        if kind >> 16:
            kind, size, tag, at = kind & 0xFFFF, kind >> 16, struct.pack(">I", kind), start + 4
        else:
            tag, at = struct.pack(">II", kind, size), start + 8
        data = elements[at : at + size]
        swapped = _swapped(data) if kind == MATRIX else _reversed(data, WIDTHS[kind])
        start = start + 8 if at == start + 4 else at + size + -size % 8
        pieces.append(tag + swapped + elements[at + size : start])
    return b"".join(pieces)


def _reversed(data: bytes, width: int) -> bytes:
    """Values of so many bytes each, the bytes of each in the other order."""
    return np.frombuffer(data, np.uint8).reshape(-1, width)[:, ::-1].tobytes()
