"""Splits: which rows, records or groups are for training and which for testing.

They are numpy permutations. With a test share x of n items, the test set is the first ceil(x * n) entries of
`RandomState(seed).permutation(n)` and the train set is the rest, both in permutation order: what scikit-learn's
`train_test_split` gives, without scikit-learn.
"""

import math
import random
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

from mlebench.core.authors import checked
from mlebench.core.errors import CompetitionError, RawDataError
from mlebench.engine.tables import Table, is_in, unique

Items = TypeVar("Items", Table, list, np.ndarray)


@checked
def split_rows(
    items: Items, *, test_size: float | int | None = None, train_size: float | int | None = None, seed: int
) -> tuple[Items, Items]:
    """Split a table, list or array into train and test; a size is a share (float) or a count (int)."""
    train, test = permutation_split(len(items), test_size, train_size, seed)
    return _take(items, train), _take(items, test)


@checked
def split_groups(
    table: Table, by: str, *, test_size: float | int, seed: int, order: Literal["file", "blocks"] = "file"
) -> tuple[Table, Table]:
    """Split the distinct values of a column; rows follow their value.

    In the order "file", values are split as they first appear, and rows keep the order of the file. In "blocks", values
    are split in ascending order, and the rows of each value are together, in the order of the permuted values.
    """
    keys = table[by]
    if order == "blocks":
        train, test = _split_blocks(keys, test_size, seed)
        return table.take(train), table.take(test)
    _, test = split_rows(unique(keys), test_size=test_size, seed=seed)
    in_test = is_in(keys, test)
    return table.where(~in_test), table.where(in_test)


@checked
def split_whole_groups(
    items: Items, groups: Sequence[Any] | np.ndarray, *, test_size: float | int, seed: int
) -> tuple[Items, Items]:
    """Split items so that no group is on both sides; `groups` names the group of every item.

    Groups are shuffled and go to test, one after another, until test has its share of the items. Both sides keep the
    order of the items.
    """
    if len(groups) != len(items):
        raise CompetitionError(f"there are {len(items)} items, but {len(groups)} names of groups")
    wanted = _count(test_size, len(items), math.ceil) or 0
    numbers, names = pd.factorize(groups if isinstance(groups, np.ndarray) else np.asarray(groups, dtype=object))
    order = np.random.RandomState(seed).permutation(len(names))
    rows_so_far = np.cumsum(np.bincount(numbers, minlength=len(names))[order])
    chosen = order[: np.searchsorted(rows_so_far, wanted) + 1]
    in_test = np.isin(numbers, chosen)
    if not 0 < wanted <= len(items) or in_test.all():
        raise RawDataError(
            f"{len(names)} groups of {len(items)} items cannot be split into training and {wanted} for testing"
        )
    return _take(items, np.flatnonzero(~in_test)), _take(items, np.flatnonzero(in_test))


def _split_blocks(keys: np.ndarray, test_size: float | int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of train and test, block after block; a row without a value is in neither."""
    groups, values = pd.factorize(keys, sort=True)
    by_group = np.argsort(groups, kind="stable")[np.count_nonzero(groups < 0) :]
    sizes = np.bincount(groups[by_group], minlength=len(values))
    starts = np.cumsum(sizes) - sizes

    def rows_of(chosen: np.ndarray) -> np.ndarray:
        lengths = sizes[chosen]
        before = np.cumsum(lengths) - lengths  # rows before each block in its new place
        return by_group[np.arange(lengths.sum()) + np.repeat(starts[chosen] - before, lengths)]

    train, test = permutation_split(len(values), test_size, None, seed)
    return rows_of(train), rows_of(test)


@checked
def split_per_class(
    classes: np.ndarray, *, test_size: float, seed: int, small_below: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of train and test when each class is split by itself; `classes` has the class of every row.

    Train rows come class by class, classes as they first appear; test rows are shuffled by Python's generator. A
    class of fewer rows than `small_below` gives its last row to test, or none if that is its only one.
    """
    numbers, _ = pd.factorize(classes)
    rows = np.argsort(numbers, kind="stable")  # class after class
    sizes = np.bincount(numbers)
    starts = np.cumsum(sizes) - sizes
    order, in_test = np.empty_like(rows), np.zeros(len(rows), dtype=bool)
    for size in np.unique(sizes).tolist():  # classes of one size are all split in the same way
        train, test = _split_class(size, test_size, seed, small_below)
        positions = starts[sizes == size, None] + np.arange(size)
        order[positions] = rows[positions[:, np.concatenate([test, train])]]
        in_test[positions[:, : len(test)]] = True
    shuffled = order[in_test].tolist()
    random.Random(seed).shuffle(shuffled)
    return order[~in_test], np.array(shuffled, dtype=np.intp)


def _split_class(size: int, test_size: float, seed: int, small_below: int) -> tuple[np.ndarray, np.ndarray]:
    if size >= small_below:
        return permutation_split(size, test_size, None, seed)
    last = max(size - 1, 1)
    return np.arange(last), np.arange(last, size)


def permutation_split(
    count: int, test_size: float | int | None, train_size: float | int | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The row numbers of train and test."""
    tests = _count(test_size, count, math.ceil)
    trains = _count(train_size, count, math.floor)
    if tests is None:
        if trains is None:
            raise CompetitionError("a split needs test_size or train_size")
        tests = count - trains
    trains = count - tests if trains is None else trains
    if min(tests, trains) < 1 or tests + trains > count:
        raise RawDataError(f"{count} items cannot be split into {trains} for training and {tests} for testing")
    order = np.random.RandomState(seed).permutation(count)
    return order[tests : tests + trains], order[:tests]


def _count(size: float | int | None, count: int, rounding: Any) -> int | None:
    if isinstance(size, float) and not 0 < size < 1:
        raise CompetitionError(f"a size of {size} is no share: give one between 0 and 1, or a whole number of items")
    return rounding(size * count) if isinstance(size, float) else size


def _take(items: Any, rows: Sequence[int] | np.ndarray) -> Any:
    if isinstance(items, Table):
        return items.take(rows)
    return items[rows] if isinstance(items, np.ndarray) else [items[row] for row in rows]
