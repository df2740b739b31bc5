"""Splits are scikit-learn's, without scikit-learn."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from mlebench.kit import Table, split_groups, split_rows

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
        theirs = train_test_split(np.arange(count), random_state=seed, **sizes)
        ours = split_rows(np.arange(count), seed=seed, **sizes)
        assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]


SHARE = st.floats(0, 1.2) | st.integers(-1, 60) | st.none()


@settings(max_examples=400)
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
        with pytest.raises(ValueError, match="cannot be split"):
            split_rows(np.arange(count), test_size=test_size, train_size=train_size, seed=seed)
        return
    ours = split_rows(np.arange(count), test_size=test_size, train_size=train_size, seed=seed)
    assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]


@given(st.lists(st.text(max_size=3), min_size=4, max_size=30))
def test_lists_arrays_and_tables_are_split_alike(items: list[str]) -> None:
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


def test_many_small_blocks_are_split_quickly() -> None:
    count = 75_000
    keys = np.random.RandomState(0).permutation(np.repeat(np.arange(count), 8))
    begun = time.process_time()
    train, _ = split_groups(Table.from_columns({"key": keys}), "key", test_size=0.1, seed=0, order="blocks")
    assert time.process_time() - begun < 2
    assert len(train) == 8 * (count - count // 10)
    assert (train["key"].reshape(-1, 8) == train["key"][::8, None]).all()
