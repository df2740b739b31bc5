"""What unrelated pieces of code have in common, learned from published notebooks.

Notebooks are often copies of each other. Similar ones form a family, which counts once: what a notebook shares with
its twenty copies is not common knowledge, and pairs of them say nothing about unrelated code.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

ALIKE = 0.5  # the share of their fingerprints that two files of a family have in common
COMMON_SHARE, COMMON_LEAST = 0.1, 4  # a fingerprint in more families is boilerplate
LEAST_SHARED = 20  # fingerprints, 10 to 20 lines: files with fewer share nothing
LEAST_FAMILIES = 20  # for a threshold
MOST_CALIBRATED = 500  # families
FALSE_ALARMS = 0.05  # how often unrelated code may exceed the threshold, on average over corpora


class Overlap(NamedTuple):
    """What a file shares with each file of an index."""

    distinct: NDArray[np.float64]  # fingerprints
    own: NDArray[np.float64]  # the same, counted as often as they occur in that file
    others: NDArray[np.float64]  # counted as often as they occur in each file of the index


class Index:
    """Which fingerprint is in which file, and how often."""

    def __init__(self, files: Sequence[Hashes]):
        sizes = [len(hashes) for hashes in files]
        self.totals = np.array(sizes, np.float64)
        everything = np.concatenate([*files, np.empty(0, np.uint64)])
        self.hashes, ids = np.unique(everything, return_inverse=True)
        owner = np.repeat(np.arange(len(files)), sizes)
        pairs, counts = np.unique(ids * max(1, len(files)) + owner, return_counts=True)
        self.of, self.file = np.divmod(pairs, max(1, len(files)))
        self.counts = counts.astype(np.float64)
        self.begin = np.searchsorted(self.of, np.arange(len(self.hashes) + 1))

    def overlap(self, hashes: Hashes) -> Overlap:
        values, counts = np.unique(hashes, return_counts=True)
        ids = np.searchsorted(self.hashes, values)
        known = ids < len(self.hashes)
        known[known] = self.hashes[ids[known]] == values[known]
        ids, counts = ids[known], counts[known]
        lengths = self.begin[ids + 1] - self.begin[ids]
        steps = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        entries = np.repeat(self.begin[ids], lengths) + steps
        files, size = self.file[entries], len(self.totals)
        weights = np.ones(len(files)), np.repeat(counts, lengths).astype(np.float64), self.counts[entries]
        return Overlap(*(np.bincount(files, weight, size).astype(np.float64) for weight in weights))

    def similarities(self, hashes: Hashes) -> NDArray[np.float64]:
        """The share of both files' fingerprints that the other one also has."""
        _, own, others = self.overlap(hashes)
        return (own + others) / np.maximum(1, len(hashes) + self.totals)


@dataclass(frozen=True)
class Threshold:
    """The containment that unrelated code rarely reaches; None if there are too few notebooks to tell."""

    value: float | None
    nearest: NDArray[np.float64]  # for each notebook, the most that any other shares with it; sorted
    says: str

    def as_much(self, containment: float) -> int:
        """How many notebooks share at least this much with another."""
        return len(self.nearest) - int(np.searchsorted(self.nearest, containment, "left"))


class Corpus:
    """Published notebooks, or any other files that runs are compared with."""

    def __init__(self, files: Sequence[Hashes]):
        self._all = Index(files)
        self.families = _families(self._all, files)
        self.family_count = len(set(self.families))
        self.common = self._in_more_than(0)
        self._files = files

    def _in_more_than(self, more: int) -> Hashes:
        """Fingerprints in more families than the boilerplate limit plus `more`."""
        families = np.array(self.families, np.int64)
        pairs = np.unique(self._all.of * max(1, len(families)) + families[self._all.file])
        having = np.bincount(pairs // max(1, len(families)), minlength=len(self._all.hashes))
        return self._all.hashes[having > more + max(COMMON_LEAST, COMMON_SHARE * self.family_count)]

    def without_common(self, hashes: Hashes) -> Hashes:
        return hashes[~np.isin(hashes, self.common)]

    @cached_property
    def index(self) -> Index:
        """An index of everything but boilerplate."""
        return Index([self.without_common(hashes) for hashes in self._files])

    @cached_property
    def threshold(self) -> Threshold:
        # As with a run, the notebook being compared does not count towards boilerplate.
        common = self._in_more_than(1)
        files = [self._files[file] for file in sorted(set(self.families))]
        distinctive = [hashes[~np.isin(hashes, common)] for hashes in files]
        chosen = [hashes for hashes in distinctive if len(np.unique(hashes)) >= LEAST_SHARED]
        if len(chosen) > MOST_CALIBRATED:
            sample = np.random.default_rng(0).choice(len(chosen), MOST_CALIBRATED, replace=False)
            chosen = [chosen[file] for file in sorted(sample.tolist())]
        return _threshold(chosen)


def containments(index: Index, hashes: Hashes) -> NDArray[np.float64]:
    """The share of a file's fingerprints that each file of an index also has; zero if that is next to nothing.

    Each counts once: in a long table or list, a few recur hundreds of times.
    """
    shared = index.overlap(hashes).distinct
    return np.where(shared >= LEAST_SHARED, shared / max(1, len(np.unique(hashes))), 0.0)


def _threshold(files: Sequence[Hashes]) -> Threshold:
    """If a file is as unrelated to these as they are to each other, its rank among them is random."""
    count = len(files)
    if count < LEAST_FAMILIES:
        says = (
            f"no threshold: there are {count} notebooks that are long enough and not copies of each other; "
            f"it takes {LEAST_FAMILIES} to say what unrelated code shares"
        )
        return Threshold(None, np.empty(0), says)
    index = Index(files)
    nearest = np.sort([np.delete(containments(index, hashes), file).max() for file, hashes in enumerate(files)])
    value = float(nearest[math.ceil((count + 1) * (1 - FALSE_ALARMS)) - 1])
    more = int((nearest > value).sum())
    says = (
        f"threshold {value:.0%}: {more} of {count} notebooks that are not copies of each other "
        f"{'has' if more == 1 else 'have'} more than that in common with another"
    )
    return Threshold(value, nearest, says)


def _families(index: Index, files: Sequence[Hashes]) -> list[int]:
    """The family of each file, named by its largest member: all others resemble that one, not just each other."""
    sizes = np.array([len(np.unique(hashes)) for hashes in files])
    family = np.full(len(files), -1)
    for file in np.argsort(-sizes, kind="stable").tolist():
        if family[file] < 0:
            shared = index.overlap(files[file]).distinct
            alike = 2 * shared >= ALIKE * (sizes[file] + sizes)
            family[alike & (family < 0)] = family[file] = file
    return family.tolist()
