"""Pages with the same text are on one side, whatever stains them (S9); every finite number has a finite score."""

from collections.abc import Sequence
from functools import cached_property
from itertools import combinations

import numpy as np
import pandas as pd

from mlebench.kit import Output, Raw, Table, accepts_paths, align, connected, split_whole_groups
from mlebench.metrics import rmse

from .prepare import TEST_SHARE, page_names, prepare_pages

SHIFT = 8  # pixels, in all directions, by which equal pages may be apart; on a tiny page, an eighth of its side
LIKENESS = 98  # percent: what correlation two pages must exceed to be equal


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    dirty, clean = raw.archive("train.zip"), raw.archive("train_cleaned.zip")
    names = page_names(dirty)
    groups = _equal_pages([_Page(clean.file(f"train_cleaned/{name}").grey_pixels()) for name in names])
    _, test = split_whole_groups(np.arange(len(names)), groups, test_size=TEST_SHARE, seed=0)
    prepare_pages([names[page] for page in test], dirty, clean, public, private)
    stems = np.array([name.partition(".")[0] for name in names], dtype=object)
    # By page, which is what a pixel's id begins with.
    private.write("groups.csv", Table.from_columns({"id": stems[test], "group": stems[np.array(groups)[test]]}))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target="value", values="numbers")
    return rmse(y_true, y_pred, scaled=True)


def _equal_pages(pages: Sequence["_Page"]) -> list[int]:
    """For each clean page, the first one that equals it, directly or through others."""
    pairs = (pair for pair in combinations(range(len(pages)), 2) if pages[pair[0]].equals(pages[pair[1]]))
    return connected(len(pages), pairs)


class _Page:
    """A clean page, with what its comparison with others needs."""

    def __init__(self, grey: np.ndarray):
        self._grey = 255 - grey.astype(np.int64)
        self._shifts = [np.arange(-most, most + 1) for most in (min(SHIFT, size // 8) for size in grey.shape)]
        self._padded = [size + SHIFT for size in grey.shape]
        self._sums, squares = self._overlapping(self._grey), self._overlapping(np.square(self._grey))
        self._areas = np.outer(*(size - abs(shifts) for size, shifts in zip(grey.shape, self._shifts, strict=True)))
        self._variances = self._areas * squares - np.square(self._sums)

    def equals(self, other: "_Page") -> bool:
        """Whether the correlation exceeds the limit after some shift, in integers: 100² · cov² > 98² · var · var."""
        if self._grey.shape != other._grey.shape:
            return False
        # The other page's part of the overlap is what this page's would be after the opposite shift.
        products = np.fft.irfft2(np.conj(self._spectrum) * other._spectrum, s=self._padded)
        covariances = self._areas * np.rint(products[np.ix_(*self._shifts)]).astype(np.int64)
        covariances -= self._sums * other._sums[::-1, ::-1]
        variances = self._variances, other._variances[::-1, ::-1]
        return any(
            covariance > 0 and 100**2 * covariance**2 > LIKENESS**2 * mine * its
            for covariance, mine, its in zip(
                *(part.ravel().tolist() for part in (covariances, *variances)), strict=True
            )
        )

    @cached_property
    def _spectrum(self) -> np.ndarray:
        """Of the darkness. Sums of its products are whole numbers below 2**40, so rounding makes them exact."""
        return np.fft.rfft2(self._grey, s=self._padded)

    def _overlapping(self, values: np.ndarray) -> np.ndarray:
        """For each shift of another page of this size, the sum over what it covers."""
        sums = np.pad(np.cumsum(np.cumsum(values, axis=0), axis=1), ((1, 0), (1, 0)))
        for axis, shifts in enumerate(self._shifts):
            size = values.shape[axis]
            ends, starts = (np.clip(size - shifts, None, size), np.clip(-shifts, 0, None))
            sums = np.take(sums, ends, axis=axis) - np.take(sums, starts, axis=axis)
        return sums
