"""Winnowing (Schleimer, Wilkerson, Aiken 2003): few hashes of token sequences, chosen so that shared ones are found.

Whenever two programs have at least `K + W - 1` tokens in a row in common, they share a fingerprint.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

K = 23  # tokens in a hash
W = 17  # hashes in a window, of which at least one is kept
SURELY_FOUND = K + W - 1

_BASE = np.uint64(0x9E3779B97F4A7C15 | 1)


class Fingerprints(NamedTuple):
    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]  # the first token of each


def fingerprint(values: NDArray[np.uint64], k: int = K, w: int = W) -> Fingerprints:
    """The least hash of each window of `w`, the last if several are equal; the first windows are shorter."""
    count = len(values) - k + 1
    if count < 1:
        return Fingerprints(np.empty(0, np.uint64), np.empty(0, np.int64))
    hashes = _hashes(values, k)
    padded = np.concatenate([np.full(w - 1, np.iinfo(np.uint64).max, np.uint64), hashes])
    windows = np.lib.stride_tricks.sliding_window_view(padded, w)
    # `argmin` takes the first of equal values, so windows are read backwards.
    starts = np.unique(np.arange(count) - windows[:, ::-1].argmin(axis=1))
    return Fingerprints(hashes[starts], starts)


def _hashes(values: NDArray[np.uint64], k: int) -> NDArray[np.uint64]:
    """A hash of each `k` values in a row, by arithmetic modulo 2⁶⁴."""
    count = len(values) - k + 1
    hashes = np.zeros(count, np.uint64)
    for offset in range(k):
        hashes = hashes * _BASE + values[offset : offset + count]
    return _mixed(hashes)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Make every bit depend on all bits: otherwise the least hash would favour some kinds of code."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
