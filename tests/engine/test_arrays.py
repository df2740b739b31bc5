"""npy files: the bytes that numpy's `save` writes, in bounded memory."""

import tracemalloc
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlebench.core.errors import PrerequisiteError
from mlebench.engine import arrays
from mlebench.engine.arrays import npy_pieces
from mlebench.kit import Output, open_raw
from mlebench.kit.outputs import finish
from mlebench.kit.twins import npy_bytes, zip_bytes

pytestmark = pytest.mark.bytes

KINDS = ["<f4", ">f8", "u1", "<i8", "?", "<U2", "S3", "<c8", [("a", "<i2"), ("b", "<f4", (2,))]]


@example("<f4", (4, 2, 3), [0], 1, "F")
@given(
    st.sampled_from(KINDS),
    st.sampled_from([(0,), (7,), (5, 3), (4, 2, 3), (3, 0), (1, 12345)]),
    st.none() | st.lists(st.integers(-3, 2), max_size=9),
    st.sampled_from([1, 30, 1 << 20]),
    st.sampled_from("CF"),
)
def test_bytes_match_numpys_save(
    kind: str, shape: tuple[int, ...], rows: list[int] | None, block: int, order: Literal["C", "F"]
) -> None:
    array = np.zeros(shape, dtype=kind, order=order)
    array[...] = (
        np.arange(array.size, dtype=np.int16).astype(array.dtype if array.dtype.names is None else "i2").reshape(shape)
    )
    chosen = None if rows is None else np.array(rows if shape[0] >= 3 else [], dtype=np.intp)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "BLOCK_BYTES", block)
        written = b"".join(npy_pieces(array, chosen))
    assert written == npy_bytes(array if chosen is None else array[chosen])


def test_objects_are_not_written() -> None:
    with pytest.raises(ValueError, match="objects"):
        npy_pieces(np.array(["a", None], dtype=object))


@pytest.mark.parametrize("large_bytes", [1 << 30, 1], ids=["in memory", "on disk"])
@pytest.mark.parametrize("inside", [False, True], ids=["in a folder", "in a zip"])
def test_arrays_are_read_and_rows_of_them_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large_bytes: int, inside: bool
) -> None:
    monkeypatch.setattr(arrays, "LARGE_BYTES", large_bytes)
    values = np.random.RandomState(0).rand(50, 4).astype(np.float32)
    raw = tmp_path / "raw"
    if inside:
        raw.write_bytes(zip_bytes({"a/b.npy": npy_bytes(values)}))
    else:
        (raw / "a").mkdir(parents=True)
        (raw / "a/b.npy").write_bytes(npy_bytes(values))
    rows = np.random.RandomState(1).permutation(50)[:20]
    public = Output(tmp_path / "public")
    with open_raw(raw, tmp_path) as opened:
        array = opened.array("a/b.npy")
        assert isinstance(array, np.memmap) is (large_bytes == 1)
        assert (array == values).all()
        public.write_array("deep/some.npy", array, rows)
        finish([public], tmp_path)
    assert (tmp_path / "public/deep/some.npy").read_bytes() == npy_bytes(values[rows])


def test_a_large_array_is_never_entirely_in_memory(tmp_path: Path) -> None:
    values = np.arange(8_000_000, dtype=np.float64).reshape(-1, 100)  # 64 MB
    np.save(tmp_path / "big.npy", values)
    del values
    public = Output(tmp_path / "public")
    with open_raw(tmp_path, tmp_path) as raw:
        array = raw.array("big.npy")
        order = np.random.RandomState(0).permutation(len(array))
        tracemalloc.start()
        public.write_array("some.npy", array, order)
        finish([public], tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1.5 * 2 * arrays.BLOCK_BYTES + (8 << 20), peak
    assert (np.load(tmp_path / "public/some.npy", mmap_mode="r")[:, 0] == 100 * order).all()


@pytest.mark.parametrize("large_bytes", [1 << 30, 0], ids=["in memory", "on disk"])
@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", npy_bytes(np.arange(100))[:-8], b"id,x\n1,2\n" * 30])
def test_damage_is_reported_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large_bytes: int, content: bytes
) -> None:
    monkeypatch.setattr(arrays, "LARGE_BYTES", large_bytes)
    (tmp_path / "a.npy").write_bytes(content)
    with open_raw(tmp_path, tmp_path) as raw, pytest.raises(PrerequisiteError, match=r"a\.npy cannot be read"):
        raw.array("a.npy")


def test_a_missing_array_is_reported_as_such(tmp_path: Path) -> None:
    with open_raw(tmp_path, tmp_path) as raw, pytest.raises(PrerequisiteError, match=r"the raw data lacks a\.npy"):
        raw.array("a.npy")
