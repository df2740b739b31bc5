"""Run-length encoded masks: `start length` pairs, one-based, down the columns of an image.

Runs stay runs: a mask of a gigapixel slide is a few thousand numbers, and overlaps can be counted on those.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from mlebench.core.errors import InvalidSubmissionError

FAR = 2**61  # larger than any image; the sum of two such numbers fits in 64 bits


class RunLengths(NamedTuple):
    """Half-open, zero-based pixel ranges, sorted and disjoint."""

    starts: np.ndarray
    ends: np.ndarray


def parse_runs(text: str, pixels: int, *, strict: bool = True) -> RunLengths:
    """Parse the runs of a mask with that many pixels; ValueError says what is wrong with the text.

    A mask without pixels is an empty text or, if `strict`, a minus sign. `strict=False` accepts what the published
    graders accept: runs past the last pixel are cut off there; of odd numbers of tokens, one gives an empty mask, and
    three make two runs that share the only length.
    """
    tokens = _whole_numbers("" if strict and text == "-" else text, strict=strict)
    starts, lengths = tokens[0::2], tokens[1::2]
    if len(starts) != len(lengths):
        if strict or len(tokens) > 3:
            raise ValueError("a run-length encoding has a start without a length")
        starts, lengths = (starts[:0], lengths) if len(tokens) == 1 else (starts, np.repeat(lengths, 2))
    if (tokens <= 0).any():
        raise ValueError("starts and lengths of a run-length encoding must be positive")
    if (np.diff(starts) < 0).any():
        raise ValueError("the starts of a run-length encoding must be in ascending order")
    starts, ends = starts - 1, starts - 1 + lengths
    overflown = ends < starts  # sums beyond 64 bits come out negative
    if strict and ((ends > pixels) | overflown).any():
        raise ValueError("a run-length encoding goes past the last pixel")
    inside = (starts < pixels) & ~overflown
    starts, ends = starts[inside], np.minimum(ends[inside], pixels)
    if (starts[1:] < ends[:-1]).any():
        raise ValueError("runs of a run-length encoding overlap")
    return RunLengths(starts, ends)


def _whole_numbers(text: str, *, strict: bool) -> np.ndarray:
    try:
        numbers = list(map(int, text.split()))
        # Published graders handle numbers of more than 64 bits, or a single one of 64, correctly at any size.
        if not strict and numbers and (max(numbers) >= 2**64 or len(numbers) == 1):
            numbers = [max(-1, min(number, FAR)) for number in numbers]
        return np.array(numbers, dtype=np.int64)
    except (ValueError, OverflowError):
        raise ValueError("a run-length encoding holds something that is not a whole number") from None


def parse_masks(
    texts: Iterable[str], pixels: Iterable[int], *, column: str, ids: Iterable[Any], strict: bool = True
) -> list[RunLengths]:
    """The masks in a column of a submission, for images of these sizes; errors say which row is wrong and why."""
    masks = []
    for text, count, id in zip(texts, pixels, ids, strict=True):
        try:
            masks.append(parse_runs(text, int(count), strict=strict))
        except ValueError as error:
            raise InvalidSubmissionError(f"Column `{column}`, row of {id}: {error}.") from None
    return masks


def decode_runs(runs: RunLengths, height: int, width: int) -> np.ndarray:
    """The mask as a boolean array of shape (height, width)."""
    edges = np.zeros(height * width + 1, dtype=np.int8)
    np.add.at(edges, runs.starts, 1)
    np.add.at(edges, runs.ends, -1)
    return np.cumsum(edges[:-1], dtype=np.int8).astype(bool).reshape(width, height).T


def encode_runs(mask: np.ndarray, value: int = 1) -> list[int]:
    """Starts and lengths, alternating, of the pixels that have this value."""
    hit = np.concatenate([[False], mask.T.ravel() == value, [False]])
    edges = np.flatnonzero(hit[1:] != hit[:-1])
    starts, ends = edges[0::2], edges[1::2]
    return np.column_stack([starts + 1, ends - starts]).ravel().tolist()
