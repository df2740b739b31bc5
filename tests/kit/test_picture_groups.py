"""Groups of pictures that look alike."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from mlebench.core.errors import RawDataError
from mlebench.kit import Output, connected, groups_of_pictures, open_raw, picture_hash, split_by_likeness

pytestmark = pytest.mark.bytes


def _hash_by_hand(grey: list[list[int]]) -> int:
    """The rule, block by block, for pictures of at least 8 rows and 9 columns."""
    height, width = len(grey), len(grey[0])
    bits = ""
    for row in range(8):
        lines = grey[row * height // 8 : (row + 1) * height // 8]
        blocks = [[cell for line in lines for cell in line[c * width // 9 : (c + 1) * width // 9]] for c in range(9)]
        means = [sum(block) // len(block) for block in blocks]
        bits += "".join(str(int(left < right)) for left, right in pairwise(means))
    return int(bits, 2)


@given(st.integers(8, 30), st.integers(9, 30), st.integers(0, 2**32 - 1))
def test_a_hash_compares_blocks_with_their_right_neighbours(height: int, width: int, seed: int) -> None:
    grey = np.random.RandomState(seed).randint(0, 256, (height, width)).astype(np.uint8)
    assert picture_hash(grey) == _hash_by_hand(grey.tolist())


@given(st.integers(1, 8), st.integers(1, 9))
def test_every_size_has_a_hash(height: int, width: int) -> None:
    rising = np.tile(np.arange(width, dtype=np.uint8), (height, 1))
    assert picture_hash(rising).bit_count() == 8 * (width - 1)


@given(st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=20))
def test_connected_items_share_their_first(pairs: list[tuple[int, int]]) -> None:
    groups = [{item} for item in range(15)]
    for low, high in pairs:
        merged = groups[low] | groups[high]
        for item in merged:
            groups[item] = merged
    assert connected(15, pairs) == [min(group) for group in groups]


def _write(folder: Path, name: str, bits: int) -> None:
    """A picture with this hash: in each row of blocks, a step up for each bit that is set, otherwise a step down."""
    steps = np.array([int(bit) for bit in f"{bits:064b}"]).reshape(8, 8) * 2 - 1
    rows = np.cumsum(np.pad(steps, ((0, 0), (1, 0))), axis=1) * 10 + 128
    Image.fromarray(np.kron(rows, np.ones((2, 3))).astype(np.uint8)).save(folder / f"{name}.png")


def test_pictures_are_grouped_by_the_distance_of_their_hashes(tmp_path: Path) -> None:
    base = 0x0123456789ABCDEF
    for name, bits in {"a": base, "b": base ^ 0b1111, "c": base ^ 0b11, "d": ~base % 2**64, "e": base}.items():
        _write(tmp_path, name, bits)
    with open_raw(tmp_path) as raw:
        files = raw.files("*.png")
        a, b, c, d, e = groups_of_pictures(files)
        assert a == e == f"{base:016x}"
        assert len({a, b, c, d}) == 4
        assert groups_of_pictures(files, distance=2) == [a, a, a, d, a]  # `c` connects `a` and `b`
        assert groups_of_pictures(files, distance=1) == [a, b, c, d, a]


def test_pictures_that_look_alike_are_on_one_side_of_a_split(tmp_path: Path) -> None:
    names = [f"{number:02}" for number in range(12)]
    for number, name in enumerate(names):
        _write(tmp_path, name, number // 3)
    private = Output(tmp_path / "private")
    with open_raw(tmp_path) as raw:
        pictures = raw.files("*.png")
        train, test = split_by_likeness(names, pictures, names, private, test_size=0.2, seed=0)
    assert sorted(train + test) == names
    (group,) = {int(name) // 3 for name in test}  # a fifth of twelve is one group of three
    assert len(test) == 3
    groups, _ = private.plan.tables["groups.csv"]
    assert groups["id"].tolist() == test
    assert groups["group"].tolist() == [f"{group:016x}"] * 3


def test_a_picture_that_cannot_be_decoded_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no picture")
    with open_raw(tmp_path) as raw, pytest.raises(RawDataError, match=r"a\.png cannot be read"):
        groups_of_pictures(raw.files("*.png"))
