"""Groups of pictures that look alike, by rules in integer arithmetic: equal pixels are grouped alike everywhere."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mlebench.core.authors import checked
from mlebench.core.paths import GROUPS
from mlebench.engine.tables import Table
from mlebench.engine.threads import in_order
from mlebench.kit.outputs import Output
from mlebench.kit.raw import RawFile
from mlebench.kit.splits import Items, split_whole_groups

_ROWS, _COLUMNS = 8, 9  # blocks of a picture, so eight pairs of neighbours in each row
_ONES = np.array([byte.bit_count() for byte in range(256)], dtype=np.uint8)


@checked
def split_by_likeness(
    items: Items,
    pictures: Iterable[RawFile],
    ids: Sequence[Any] | np.ndarray,
    private: Output,
    *,
    test_size: float | int,
    seed: int,
    distance: int = 0,
) -> tuple[Items, Items]:
    """Split items, each with a picture and an id, into train and test; pictures that look alike are on one side.

    `distance` is that of `groups_of_pictures`. The groups of the test items are written to the private folder.
    """
    groups = np.array(groups_of_pictures(pictures, distance=distance), dtype=object)
    train, test = split_whole_groups(items, groups, test_size=test_size, seed=seed)
    _, rows = split_whole_groups(np.arange(len(groups)), groups, test_size=test_size, seed=seed)
    write_groups(private, np.asarray(ids)[rows], groups[rows])
    return train, test


def write_groups(private: Output, ids: np.ndarray, groups: np.ndarray) -> None:
    """Say which test items belong together, for those who compute how certain a score is."""
    private.write(GROUPS, Table.from_columns({"id": ids, "group": groups}))


def groups_of_pictures(files: Iterable[RawFile], *, distance: int = 0) -> list[str]:
    """The name of each picture's group: the hash of the group's first picture, in hexadecimal digits.

    Pictures are in one group if their hashes differ in at most `distance` bits, or if others in between connect them.
    """
    hashes = [picture_hash(grey) for _, grey in in_order(files, RawFile.grey_pixels)]
    different = [*dict.fromkeys(hashes)]
    pairs = _close_pairs(different, distance) if distance else ()
    groups = dict(zip(different, connected(len(different), pairs), strict=True))
    return [f"{different[groups[hash]]:016x}" for hash in hashes]


def picture_hash(grey: np.ndarray) -> int:
    """64 bits: whether each block of a picture (height, width) is darker than its right neighbour.

    The picture is cut into 8 rows of 9 blocks, each as bright as the mean of its pixels, rounded down.
    """
    sums, areas = grey.astype(np.int64), np.ones_like(grey, dtype=np.int64)
    for axis, blocks in enumerate((_ROWS, _COLUMNS)):
        starts = np.arange(blocks) * grey.shape[axis] // blocks
        sums, areas = (np.add.reduceat(values, starts, axis=axis) for values in (sums, areas))
    means = sums // areas
    return int.from_bytes(np.packbits(means[:, :-1] < means[:, 1:]).tobytes(), "big")


def connected(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """For each of `count` items, the first of those that pairs connect it with, directly or through others."""
    first = list(range(count))
    for pair in pairs:
        low, high = sorted(_root(first, item) for item in pair)
        first[high] = low
    return [_root(first, item) for item in range(count)]


def _root(first: list[int], item: int) -> int:
    while first[item] != item:
        first[item] = item = first[first[item]]
    return item


def _close_pairs(hashes: list[int], distance: int) -> Iterator[tuple[int, int]]:
    """The positions of hashes that differ in at most so many bits."""
    bytes_of = np.array(hashes, dtype=np.uint64).view(np.uint8).reshape(-1, 8)
    for first, its_bytes in enumerate(bytes_of):
        differing = _ONES[bytes_of[first + 1 :] ^ its_bytes].sum(axis=1)
        yield from ((first, first + 1 + offset) for offset in np.flatnonzero(differing <= distance).tolist())
