"""Label rankings against scikit-learn, lists of tokens against the textbook, both by properties."""

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mlebench.metrics import label_weighted_ranking_precision, token_error_rate

pytestmark = pytest.mark.bytes

SHAPES = array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=8)


@given(st.data())
def test_label_ranking_is_scikit_learns_weighted_by_labels(data: st.DataObject) -> None:
    shape = data.draw(SHAPES)
    true = data.draw(arrays(np.int64, shape, elements=st.integers(0, 1)))
    score = data.draw(arrays(float, shape, elements=st.integers(-8, 8).map(lambda n: n / 8)))  # few values: ties
    assume(true.any())
    labelled = true.any(axis=1)
    expected = sklearn.metrics.label_ranking_average_precision_score(
        true[labelled], score[labelled], sample_weight=true[labelled].sum(axis=1)
    )
    ours = label_weighted_ranking_precision(true, score)
    assert ours == pytest.approx(expected, abs=1e-12)
    assert isinstance(ours, np.float64)
    rows, columns = np.random.RandomState(0).permutation(shape[0]), np.random.RandomState(1).permutation(shape[1])
    moved = (part[rows][:, columns] for part in (true, score))
    assert label_weighted_ranking_precision(*moved) == pytest.approx(ours, abs=1e-12)
    assert label_weighted_ranking_precision(true, np.exp(score)) == pytest.approx(ours, abs=1e-12)
    assert label_weighted_ranking_precision(true, true) == 1


def test_label_ranking_by_hand() -> None:
    true = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    score = np.array([[0.9, 0.5, 0.1], [1.0, 0.0, 0.0], [0.5, 0.5, 0.5]])
    assert label_weighted_ranking_precision(true, score) == pytest.approx((1 + 2 / 3 + 1 / 3) / 3)
    with pytest.raises(ValueError, match="needs a true one"):
        label_weighted_ranking_precision(true[1:2], score[1:2])


def _edits(one: list[int], two: list[int]) -> int:
    """The textbook's table, row by row."""
    row = list(range(len(two) + 1))
    for i, a in enumerate(one, start=1):
        before, row[0] = row[0], i
        for j, b in enumerate(two, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


TOKENS = st.lists(st.integers(0, 20) | st.just(10**30), max_size=8)


@given(st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=5))
def test_token_errors_are_the_textbooks(pairs: list[tuple[list[int], list[int]]]) -> None:
    true, predicted = map(list, zip(*pairs, strict=True))
    tokens = sum(map(len, true))
    assume(tokens)
    ours = token_error_rate(true, predicted)
    assert ours == sum(_edits(*pair) for pair in pairs) / tokens
    assert isinstance(ours, np.float64)
    assert token_error_rate(true, true) == 0
    assert token_error_rate(true, [[] for _ in true]) == 1


def test_token_errors_count_whole_tokens_and_may_exceed_one() -> None:
    assert token_error_rate([[12, 3]], [[1, 23]]) == 1
    assert token_error_rate([[1], [2]], [[1, 2, 3, 4], [2]]) == 1.5
