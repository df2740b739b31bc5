"""What code that has nothing to do with each other has in common, learned from published notebooks.

Notebooks are often copies of each other. Those that are much alike form a family, which counts once: what stands in a
notebook and its twenty copies is not common knowledge, and pairs of them say nothing about unrelated code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

ALIKE = 0.5  # similarity that makes a family
COMMON_SHARE, COMMON_LEAST = 0.1, 4  # a fingerprint in more families than this is boilerplate
LEAST_SHARED = 30  # fingerprints, about a dozen lines: below, files count as sharing nothing
LEAST_FAMILIES = 20  # for a threshold
MOST_CALIBRATED = 500  # families
FALSE_ALARMS = 0.05  # the share of unrelated files that would pass the threshold for some notebook of the corpus


class Overlap(NamedTuple):
    """What a file shares with each file of an index, in fingerprints as often as they occur."""

    own: NDArray[np.float64]  # of that file
    others: NDArray[np.float64]  # of each file of the index


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
        places = np.repeat(self.begin[ids], lengths) + steps
        files, size = self.file[places], len(self.totals)
        own = np.bincount(files, np.repeat(counts, lengths).astype(np.float64), size)
        return Overlap(own.astype(np.float64), np.bincount(files, self.counts[places], size).astype(np.float64))

    def similarities(self, hashes: Hashes) -> NDArray[np.float64]:
        """The share of fingerprints of both files that the other one has."""
        own, others = self.overlap(hashes)
        return (own + others) / np.maximum(1, len(hashes) + self.totals)


@dataclass(frozen=True)
class Threshold:
    """The containment that unrelated notebooks do not reach; None where there are too few to tell."""

    value: float | None
    pairs: NDArray[np.float64]  # the containments it was learned from, in order
    says: str

    def as_usual(self, containment: float) -> int:
        """How many of the pairs share as much, or more."""
        return len(self.pairs) - int(np.searchsorted(self.pairs, containment, "left"))


class Corpus:
    """Published notebooks, or any other files that runs are compared with."""

    def __init__(self, files: Sequence[Hashes]):
        self._all = Index(files)
        self.families = _families(self._all, files)
        self.family_count = len(set(self.families))
        self.common = self._common()
        self._kept = [self.without_common(hashes) for hashes in files]

    def _common(self) -> Hashes:
        """Fingerprints that many families have."""
        families = np.array(self.families, np.int64)
        pairs = np.unique(self._all.of * max(1, len(families)) + families[self._all.file])
        having = np.bincount(pairs // max(1, len(families)), minlength=len(self._all.hashes))
        return self._all.hashes[having > max(COMMON_LEAST, COMMON_SHARE * self.family_count)]

    def without_common(self, hashes: Hashes) -> Hashes:
        return hashes[~np.isin(hashes, self.common)]

    @cached_property
    def index(self) -> Index:
        """Of what is not boilerplate."""
        return Index(self._kept)

    @cached_property
    def threshold(self) -> Threshold:
        largest: dict[int, int] = {}
        for file, family in enumerate(self.families):
            if family not in largest or len(self._kept[file]) > len(self._kept[largest[family]]):
                largest[family] = file
        chosen = [file for file in largest.values() if len(self._kept[file]) >= LEAST_SHARED]
        if len(chosen) > MOST_CALIBRATED:
            chosen = sorted(np.random.default_rng(0).choice(chosen, MOST_CALIBRATED, replace=False))
        return _threshold([self._kept[file] for file in chosen])


def containments(index: Index, hashes: Hashes) -> NDArray[np.float64]:
    """The share of a file's fingerprints that each file of an index has, too; none where that is next to nothing."""
    own = index.overlap(hashes).own
    return np.where(own >= LEAST_SHARED, own / max(1, len(hashes)), 0.0)


def _threshold(files: Sequence[Hashes]) -> Threshold:
    count = len(files)
    if count < LEAST_FAMILIES:
        says = (
            f"no threshold: there are {count} notebooks that are not copies of each other and long enough; "
            f"it takes {LEAST_FAMILIES} to say what unrelated code shares"
        )
        return Threshold(None, np.empty(0), says)
    index = Index(files)
    rows = [np.delete(containments(index, hashes), file) for file, hashes in enumerate(files)]
    pairs = np.sort(np.concatenate(rows))
    value = float(np.quantile(pairs, 1 - FALSE_ALARMS / (count - 1), method="higher"))
    says = (
        f"threshold {value:.1%}: among {count} unrelated notebooks ({len(pairs):,} pairs), about "
        f"{FALSE_ALARMS:.0%} of them share more than that with any other"
    )
    return Threshold(value, pairs, says)


def _families(index: Index, files: Sequence[Hashes]) -> list[int]:
    """The family of each file, named by its first member."""
    leader = list(range(len(files)))

    def first(file: int) -> int:
        while leader[file] != file:
            leader[file] = leader[leader[file]]
            file = leader[file]
        return file

    for file, hashes in enumerate(files):
        for other in np.flatnonzero(index.similarities(hashes)[:file] >= ALIKE):
            one, two = sorted((first(file), first(int(other))))
            leader[two] = one
    return [first(file) for file in range(len(files))]
