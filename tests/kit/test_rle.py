"""Run-length encodings: what is accepted, and what a mask is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mlebench.core.errors import InvalidSubmissionError
from mlebench.kit import decode_runs, encode_runs, parse_masks, parse_runs

pytestmark = pytest.mark.bytes

MASKS = arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, max_side=9))

# What the reference makes of these on an image of 3 × 4 pixels, column by column; None: it fails.
PUBLISHED = [
    ("", "000000000000"),
    ("  ", "000000000000"),
    ("1 2", "110000000000"),
    ("3 2 7 1", "001100100000"),
    ("1 99", "111111111111"),
    ("11 5", "000000000011"),
    ("14 5", "000000000000"),
    ("5", "000000000000"),
    ("9223372036854775808", "000000000000"),
    ("9" * 30, "000000000000"),
    ("3 " + "9" * 30, "001111111111"),
    (f"1 2 {'9' * 30} 4", "110000000000"),
    ("1 18446744073709551615", None),
    ("1 2 3", "111100000000"),
    ("2 3 8", "011100011100"),
    ("2 3 4", None),
    ("1_0 2", "000000000110"),
    ("2 9223372036854775807", "000000000000"),
    ("9223372036854775807 5", "000000000000"),
    ("0", None),
    ("1 0", None),
    ("-1 2", None),
    ("1 2 2 1", None),
    ("3 2 1 1", None),
    ("1 2 3 4 5", None),
    ("1 2.0", None),
    ("a b", None),
    ("1 9223372036854775808", None),
]


def _column_by_column(mask: np.ndarray) -> str:
    return "".join(map(str, mask.T.ravel().astype(int)))


@pytest.mark.parametrize(("text", "pixels"), PUBLISHED)
def test_lenient_parsing_accepts_what_published_graders_accept(text: str, pixels: str | None) -> None:
    if pixels is None:
        with pytest.raises(ValueError, match="run"):
            parse_runs(text, 12, strict=False)
    else:
        mask = decode_runs(parse_runs(text, 12, strict=False), 3, 4)
        assert mask.shape == (3, 4)
        assert _column_by_column(mask) == pixels


@pytest.mark.parametrize("text", ["", "-"])
def test_strict_parsing_accepts_a_mask_without_pixels(text: str) -> None:
    assert not decode_runs(parse_runs(text, 12), 3, 4).any()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("1 x", "not a whole number"),
        ("1 99999999999999999999", "not a whole number"),
        ("5", "a start without a length"),
        ("1 2 5", "a start without a length"),
        ("1 0", "must be positive"),
        ("3 1 1 1", "ascending order"),
        ("1 2 2 2", "overlap"),
        ("12 2", "past the last pixel"),
        ("13 1", "past the last pixel"),
        ("2 9223372036854775807", "past the last pixel"),
    ],
)
def test_strict_parsing_says_what_is_wrong(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse_runs(text, 12)


@given(MASKS)
def test_a_mask_survives_encoding_and_decoding(mask: np.ndarray) -> None:
    tokens = encode_runs(mask)
    for strict in (True, False):
        runs = parse_runs(" ".join(map(str, tokens)), mask.size, strict=strict)
        assert (decode_runs(runs, *mask.shape) == mask).all()
        assert (runs.ends - runs.starts).sum() == mask.sum()


@given(MASKS)
def test_runs_are_as_few_as_possible(mask: np.ndarray) -> None:
    tokens = encode_runs(mask)
    assert len(tokens) // 2 == len(_column_by_column(mask).replace("0", " ").split())
    assert all(isinstance(token, int) for token in tokens)


def test_pixels_of_another_value_can_be_encoded() -> None:
    assert encode_runs(np.array([[2, 1], [2, 2]]), value=2) == [1, 2, 4, 1]


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), max_size=6), st.integers(1, 30))
def test_lenient_parsing_clips_what_strict_parsing_refuses(gaps: list[tuple[int, int]], pixels: int) -> None:
    mask, tokens = np.zeros(100, dtype=bool), []
    place = 0
    for gap, length in gaps:
        place += gap
        tokens += [place + 1, length]
        mask[place : place + length] = True
        place += length
    runs = parse_runs(" ".join(map(str, tokens)), pixels, strict=False)
    assert (decode_runs(runs, pixels, 1).ravel() == mask[:pixels]).all()


def test_masks_of_a_column_are_parsed_one_by_one() -> None:
    masks = parse_masks(["1 2", "", "3 9"], [4, 4, 5], column="mask", ids=["a", "b", "c"], strict=False)
    assert [(mask.starts.tolist(), mask.ends.tolist()) for mask in masks] == [([0], [2]), ([], []), ([2], [5])]


def test_a_fault_in_a_column_of_masks_names_its_row() -> None:
    with pytest.raises(InvalidSubmissionError, match=r"^Column `mask`, row of b: .* goes past the last pixel\.$"):
        parse_masks(["1 2", "3 9"], [4, 4], column="mask", ids=["a", "b"])
