"""Splits are scikit-learn's, without scikit-learn."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from mlebench.core.errors import RawDataError
from mlebench.kit import Table, split_groups, split_per_class, split_rows, split_whole_groups

pytestmark = pytest.mark.bytes

SEEDS = (0, 8, 42)
SIZES = (
    *({"test_size": size} for size in (0.1, 0.2, 0.25, 0.33, 0.5, 0.05, 0.9, 1, 3)),
    *({"train_size": size} for size in (0.1, 0.7, 0.9, 1, 2)),
    {"test_size": 0.3, "train_size": 0.5},
    {"test_size": 2, "train_size": 3},
    {"test_size": 2, "train_size": 0.5},
)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_rows_are_split_as_scikit_learn_splits_them(sizes: dict[str, float], seed: int) -> None:
    for count in (*range(10, 40), 99, 100, 101, 1000, 8693, 12345):
        test, train = sizes.get("test_size"), sizes.get("train_size")
        theirs = train_test_split(np.arange(count), random_state=seed, test_size=test, train_size=train)
        ours = split_rows(np.arange(count), seed=seed, **sizes)
        assert [part.tolist() for part in ours] == [list(part) for part in theirs]


SHARE = st.floats(0, 1.2) | st.integers(-1, 60) | st.none()


@settings(max_examples=4 * settings().max_examples)
@given(st.integers(1, 50), SHARE, SHARE, st.integers(0, 2**32 - 1))
def test_what_scikit_learn_cannot_split_is_refused(
    count: int, test_size: float | None, train_size: float | None, seed: int
) -> None:
    if test_size is train_size is None:
        with pytest.raises(ValueError, match="needs test_size or train_size"):
            split_rows(np.arange(count), seed=seed)
        return
    if isinstance(test_size, float) and isinstance(train_size, float) and test_size + train_size > 1:
        return  # scikit-learn refuses these shares even where their counts fit
    try:
        theirs = train_test_split(np.arange(count), test_size=test_size, train_size=train_size, random_state=seed)
    except ValueError:
        with pytest.raises(ValueError, match=r"cannot be split|is no share"):
            split_rows(np.arange(count), test_size=test_size, train_size=train_size, seed=seed)
        return
    ours = split_rows(np.arange(count), test_size=test_size, train_size=train_size, seed=seed)
    assert [part.tolist() for part in ours] == [list(part) for part in theirs]


@given(st.lists(st.text(max_size=3), min_size=4, max_size=30))
def test_lists_arrays_and_tables_are_split_the_same(items: list[str]) -> None:
    train, test = split_rows(items, test_size=0.3, seed=1)
    array = np.array([*items, None], dtype=object)[:-1]
    assert [part.tolist() for part in split_rows(array, test_size=0.3, seed=1)] == [train, test]
    of_table = split_rows(Table.from_columns({"t": array}), test_size=0.3, seed=1)
    assert [part["t"].tolist() for part in of_table] == [train, test]
    assert sorted(train + test) == sorted(items)


@given(st.lists(st.integers(0, 9), min_size=5, max_size=60).filter(lambda keys: len(set(keys)) > 3), st.integers(0, 99))
def test_groups_stay_whole_and_rows_keep_their_order(keys: list[int], seed: int) -> None:
    table = Table.from_columns({"key": keys, "row": range(len(keys))})
    train, test = split_groups(table, "key", test_size=0.25, seed=seed)
    distinct = list(dict.fromkeys(keys))
    _, expected = train_test_split(distinct, test_size=0.25, random_state=seed)
    assert test["row"].tolist() == [row for row, key in enumerate(keys) if key in expected]
    assert train["row"].tolist() == [row for row, key in enumerate(keys) if key not in expected]


KEYS = st.lists(st.integers(0, 9), min_size=5, max_size=60).filter(lambda keys: len(set(keys)) > 3)


@given(KEYS | KEYS.map(lambda keys: [f"b{10 - key}" for key in keys]), st.integers(0, 99))
def test_groups_in_blocks_are_those_of_a_grouped_frame(keys: list, seed: int) -> None:
    table = Table.from_columns({"key": keys, "row": range(len(keys))})
    groups = [frame["row"].tolist() for _, frame in table.to_pandas().groupby("key")]
    theirs = train_test_split(groups, test_size=0.25, random_state=seed)
    ours = split_groups(table, "key", test_size=0.25, seed=seed, order="blocks")
    assert [part["row"].tolist() for part in ours] == [[row for rows in part for row in rows] for part in theirs]


def test_blocks_leave_out_rows_without_a_value_as_grouping_does() -> None:
    table = Table.from_columns({"key": [2.0, float("nan"), 1.0, 2.0, float("nan"), 0.0], "row": range(6)})
    train, test = split_groups(table, "key", test_size=1, seed=0, order="blocks")
    assert sorted([*train["row"], *test["row"]]) == [0, 2, 3, 5]


def test_many_small_blocks_stay_whole() -> None:
    count = 75_000
    keys = np.random.RandomState(0).permutation(np.repeat(np.arange(count), 8))
    train, _ = split_groups(Table.from_columns({"key": keys}), "key", test_size=0.1, seed=0, order="blocks")
    assert len(train) == 8 * (count - count // 10)
    assert (train["key"].reshape(-1, 8) == train["key"][::8, None]).all()


def _split_class_by_class(classes: list, test_size: float, seed: int, small_below: int) -> tuple[list[int], list[int]]:
    """The rule, row by row."""
    rows_of: dict = {}
    for row, value in enumerate(classes):
        rows_of.setdefault(value, []).append(row)
    train, test = [], []
    for rows in rows_of.values():
        if len(rows) >= small_below:
            some, others = train_test_split(rows, test_size=test_size, random_state=seed)
        else:
            some, others = (rows, []) if len(rows) == 1 else (rows[:-1], rows[-1:])
        train += some
        test += others
    random.Random(seed).shuffle(test)
    return train, test


@given(st.lists(st.integers(-2, 5), max_size=80), st.sampled_from([0.12, 0.2, 0.5]), st.integers(0, 9))
def test_classes_are_split_one_by_one_and_test_rows_shuffled(classes: list[int], test_size: float, seed: int) -> None:
    expected = _split_class_by_class(classes, test_size, seed, 5)
    for values in (np.array(classes, dtype=int), np.array([f"c{number}" for number in classes], dtype=object)):
        ours = split_per_class(values, test_size=test_size, seed=seed, small_below=5)
        assert [part.tolist() for part in ours] == list(expected)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(0, 9))
def test_without_a_rule_for_small_classes_one_that_cannot_be_split_is_refused(classes: list[int], seed: int) -> None:
    if any(classes.count(value) == 1 for value in classes):
        with pytest.raises(ValueError, match="1 items cannot be split"):
            split_per_class(np.array(classes), test_size=0.2, seed=seed)
        return
    ours = split_per_class(np.array(classes), test_size=0.2, seed=seed)
    assert [part.tolist() for part in ours] == list(_split_class_by_class(classes, 0.2, seed, 0))


def test_many_classes_of_many_sizes_are_split_into_parts_of_the_whole() -> None:
    classes = np.random.RandomState(0).zipf(1.3, 2_000_000) % 65_000
    train, test = split_per_class(classes, test_size=0.2, seed=0, small_below=5)
    assert len(train) + len(test) == len(classes)
    assert not (np.bincount(np.concatenate([train, test])) != 1).any()


@given(st.lists(st.integers(0, 12), min_size=2, max_size=60), st.floats(0.05, 0.6), st.integers(0, 99))
def test_whole_groups_go_to_one_side_until_test_has_its_share(groups: list[int], share: float, seed: int) -> None:
    wanted = math.ceil(share * len(groups))
    items = list(enumerate(groups))
    try:
        train, test = split_whole_groups(items, groups, test_size=share, seed=seed)
    except RawDataError:
        assert len(groups) - max(map(groups.count, groups)) < wanted  # no group is left for training
        return
    assert sorted(train + test) == items
    assert (train, test) == (sorted(train), sorted(test))
    assert not {group for _, group in train} & {group for _, group in test}
    largest = max(groups.count(group) for _, group in test)
    assert wanted <= len(test) < wanted + largest
