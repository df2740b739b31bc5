"""MAT files are read back by scipy."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import loadmat

from mlebench.kit.twins import mat_bytes

NAMES = st.text("abcXYZ_", min_size=1, max_size=31).filter(lambda name: name[0] != "_")
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc"), max_codepoint=0xFFFF), min_size=1, max_size=9)
TEXTS = TEXTS.filter(lambda text: text == text.strip())
NUMBERS = st.floats(allow_nan=False) | st.integers(-99, 99).map(float)


@given(st.dictionaries(NAMES, TEXTS | NUMBERS, min_size=1, max_size=4))
def test_texts_and_numbers(values: dict[str, str | float]) -> None:
    read = loadmat(io.BytesIO(mat_bytes(values)), simplify_cells=True)
    assert {name: read[name] for name in values} == values


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (3, 4)])
def test_matrices(shape: tuple[int, int]) -> None:
    matrix = np.arange(shape[0] * shape[1]).reshape(shape) / 8
    assert (loadmat(io.BytesIO(mat_bytes({"m": matrix})))["m"] == matrix).all()


@given(st.lists(st.fixed_dictionaries({"Name": TEXTS, "Begin": NUMBERS}), min_size=2, max_size=4), NAMES)
def test_structs_in_structs(rows: list[dict[str, str | float]], name: str) -> None:
    video = {"Labels": rows, "FrameRate": 20.0, "Deep": {"er": {"x": "y"}}}
    read = loadmat(io.BytesIO(mat_bytes({name: video})), simplify_cells=True)[name]
    assert read["Deep"] == video["Deep"]
    assert read["FrameRate"] == 20.0
    assert [dict(row) for row in read["Labels"]] == rows
