"""Metrics of predicted probabilities against scikit-learn, scipy and hand-worked examples."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy
from support.metric_oracles import f1_score

from mlebench.metrics import kl_divergence, probabilistic_f1

pytestmark = pytest.mark.bytes

FLAGS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


@given(FLAGS)
def test_probabilistic_f1_of_hard_predictions_is_scikit_learns_f1(rows: list[tuple[bool, bool]]) -> None:
    true, predicted = np.array(rows).T.astype(int)
    expected = f1_score(true, predicted, zero_division=0)
    assert probabilistic_f1(true, predicted) == pytest.approx(expected, abs=1e-15)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 8)), min_size=1, max_size=30))
def test_a_prediction_counts_as_so_many_eighths_of_a_row(rows: list[tuple[bool, int]]) -> None:
    true, eighths = np.array(rows).T
    # Eight copies of each row, of which so many are predicted: the number of true ones is eight times as large.
    copies = np.concatenate([np.arange(8) < count for count in eighths]).astype(int)
    expected = f1_score(np.repeat(true, 8), copies, zero_division=0)
    assert probabilistic_f1(true, eighths / 8) == pytest.approx(expected, abs=1e-15)


def test_probabilistic_f1_of_a_worked_example() -> None:
    true, predicted = np.array([1, 0, 1, 0]), np.array([0.75, 0.25, 0.25, 0.0])
    precision, recall = 1 / 1.25, 1 / 2
    assert probabilistic_f1(true, predicted) == pytest.approx(2 * precision * recall / (precision + recall))
    assert probabilistic_f1(true, np.array([1.5, 0, np.inf, -3])) == 1, "predictions are clipped"
    assert probabilistic_f1(true, np.zeros(4)) == 0
    assert probabilistic_f1(true, 1 - true) == 0


@st.composite
def distributions(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Votes as shares, some of them 0, and predicted probabilities, none too near 0 or 1."""
    classes, rows = draw(st.integers(2, 6)), draw(st.integers(1, 6))
    votes = st.lists(st.integers(0, 5), min_size=classes, max_size=classes).filter(any)
    weights = st.lists(st.integers(1, 1000), min_size=classes, max_size=classes)
    true, predicted = (np.array([draw(line) for _ in range(rows)], dtype=float) for line in (votes, weights))
    return true / true.sum(axis=1, keepdims=True), predicted / predicted.sum(axis=1, keepdims=True)


@given(distributions())
def test_kl_divergence_is_scipys_entropy(data: tuple[np.ndarray, np.ndarray]) -> None:
    true, predicted = data
    expected = np.mean(entropy(true, predicted, axis=1))
    assert kl_divergence(true, predicted) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert kl_divergence(true, predicted) > -1e-12
    assert kl_divergence(true, true) == pytest.approx(0, abs=1e-12)
    assert kl_divergence(true, predicted, ignore_empty=True) == kl_divergence(true, predicted)


def test_kl_divergence_of_worked_examples() -> None:
    true = np.array([[0.5, 0.5, 0], [0, 0, 1]])
    assert kl_divergence(true, np.array([[0.25, 0.5, 0.25], [0, 0, 1]])) == pytest.approx(0.5 * math.log(2) / 2)
    # A certain but wrong prediction costs log(1e15), and no more.
    assert kl_divergence(true, np.array([[0, 0.5, 0.5], [1, 0, 0]])) == pytest.approx(
        (0.5 * math.log(0.5e15) + math.log(1e15)) / 2
    )


def test_classes_that_are_not_clipped_may_cost_infinity() -> None:
    true, predicted = np.array([[0.5, 0.5], [1, 0]]), np.array([[0, 1], [1, 0]])
    clipped = kl_divergence(true, predicted)
    assert clipped == kl_divergence(true, predicted, not_clipped=np.array([False, False]))
    assert clipped == pytest.approx(kl_divergence(true, predicted, not_clipped=np.array([False, True])))
    assert kl_divergence(true, predicted, not_clipped=np.array([True, False])) == np.inf
    assert kl_divergence(true[1:], predicted[1:], not_clipped=np.array([True, True])) == 0


def test_empty_predictions_are_ignored_or_make_the_score_nan() -> None:
    true, predicted = np.array([[0.5, 0.5], [1, 0]]), np.array([[np.nan, 1], [0.5, np.nan]])
    assert np.isnan(kl_divergence(true, predicted))
    assert kl_divergence(true, predicted, ignore_empty=True) == pytest.approx((0.5 * math.log(0.5) + math.log(2)) / 2)
    assert kl_divergence(true[1:], predicted[1:]) == pytest.approx(math.log(2)), "no truth, no matter"


def test_scores_are_numpy_floats_as_in_the_published_graders() -> None:
    for predicted in (np.array([0.5, 0.2]), np.zeros(2), np.array([1, 0])):
        assert type(probabilistic_f1(np.array([1, 0]), predicted)) is np.float64
    assert type(kl_divergence(np.eye(2), np.eye(2))) is np.float64
    assert type(kl_divergence(np.eye(2), np.eye(2), ignore_empty=True)) is np.float64
