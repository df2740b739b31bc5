"""Metrics against scikit-learn, scipy and plain restatements, and by properties."""

import math
from typing import Any

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.spatial.transform import Rotation
from scipy.stats import mannwhitneyu

from mlebench.kit import Runs, decode_runs, encode_runs, parse_runs
from mlebench.metrics import (
    accuracy,
    auroc,
    average_precision_at_k,
    dice_coefficient,
    dice_of_runs,
    log_loss,
    mean_angular_error,
    mean_average_precision_at_k,
    rmse,
    rmsle,
)

pytestmark = pytest.mark.bytes

COUNT = st.integers(2, 40)
SMALL = st.integers(-8, 8).map(lambda n: n / 8)  # few distinct values: ties


@st.composite
def pairs(draw: st.DrawFn, truth: st.SearchStrategy, guess: st.SearchStrategy) -> tuple[np.ndarray, np.ndarray]:
    count = draw(COUNT)
    columns = (draw(st.lists(values, min_size=count, max_size=count)) for values in (truth, guess))
    one, two = map(np.array, columns)
    return one, two


LABELS = st.integers(0, 3)


@given(
    pairs(LABELS, LABELS) | pairs(st.sampled_from("ab"), st.sampled_from("abc")) | pairs(st.booleans(), st.booleans())
)
def test_accuracy_is_scikit_learns(data: tuple[np.ndarray, np.ndarray]) -> None:
    assert accuracy(*data) == sklearn.metrics.accuracy_score(*data)
    assert accuracy(*(part.astype(object) for part in data)) == accuracy(*data)


def test_labels_of_different_kinds_are_never_equal() -> None:
    words = np.array(["1", "2", "x"], dtype=object)
    assert accuracy(np.array([1, 2, 3]), words) == 0
    assert accuracy(words, np.array([1.0, 2.0, 3.0])) == 0
    assert accuracy(np.array([True, False]), np.array([1, 0])) == 1


def _both_classes(truth: np.ndarray) -> bool:
    return len(set(truth.tolist())) == 2


@given(pairs(st.booleans(), SMALL))
def test_auroc_is_scikit_learns_and_mann_and_whitneys(data: tuple[np.ndarray, np.ndarray]) -> None:
    truth, score = data
    assume(_both_classes(truth))
    ours = auroc(truth, score)
    assert ours == pytest.approx(sklearn.metrics.roc_auc_score(truth, score), abs=1e-12)
    wins = mannwhitneyu(score[truth], score[~truth], method="asymptotic").statistic
    assert ours == pytest.approx(wins / (truth.sum() * (~truth).sum()), abs=1e-12)
    assert auroc(truth.astype(int), score) == ours


@given(pairs(st.booleans(), SMALL), st.integers(0, 2**31))
def test_auroc_depends_on_the_order_of_scores_only(data: tuple[np.ndarray, np.ndarray], seed: int) -> None:
    truth, score = data
    assume(_both_classes(truth))
    ours = auroc(truth, score)
    for increasing in (lambda x: 3 * x - 7, np.exp, np.arctan, lambda x: x**3):
        assert auroc(truth, increasing(score)) == ours
    assert auroc(truth, -score) == pytest.approx(1 - ours, abs=1e-12)
    assert auroc(~truth, score) == pytest.approx(1 - ours, abs=1e-12)
    order = np.random.RandomState(seed).permutation(len(truth))
    assert auroc(truth[order], score[order]) == pytest.approx(ours, abs=1e-12)


def test_auroc_of_a_constant_is_a_half_and_of_one_class_undefined() -> None:
    assert auroc(np.array([0, 1, 1]), np.zeros(3)) == 0.5
    for truth in (np.zeros(3), np.ones(3)):
        with pytest.raises(ValueError, match="both classes"):
            auroc(truth, np.arange(3))


def test_auroc_of_many_rows_does_not_overflow() -> None:
    truth = np.arange(300_000) % 2 == 0
    assert auroc(truth, truth.astype(float)) == 1


@st.composite
def class_probabilities(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    rows, classes = draw(st.integers(1, 20)), draw(st.integers(2, 5))
    weights = np.array(draw(st.lists(st.integers(0, 9), min_size=rows * classes, max_size=rows * classes)), dtype=float)
    weights = weights.reshape(rows, classes)
    weights[weights.sum(axis=1) == 0] = 1
    labels = np.array(draw(st.lists(st.integers(0, classes - 1), min_size=rows, max_size=rows)))
    return labels, weights / weights.sum(axis=1, keepdims=True)


@given(class_probabilities())
def test_log_loss_is_scikit_learns(data: tuple[np.ndarray, np.ndarray]) -> None:
    labels, probabilities = data
    classes = probabilities.shape[1]
    expected = sklearn.metrics.log_loss(labels, probabilities, labels=range(classes))
    assert log_loss(np.eye(classes)[labels], probabilities) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_log_loss_is_finite_where_the_truth_was_given_no_chance_and_rows_are_not_normalised() -> None:
    assert log_loss(np.array([[1, 0]]), np.array([[0.0, 1.0]])) == pytest.approx(-math.log(np.finfo(float).eps))
    assert log_loss(np.array([[1, 0]]), np.array([[0.25, 0.25]])) == pytest.approx(math.log(4))


FLOATS = st.floats(-1e6, 1e6)


@given(pairs(FLOATS, FLOATS))
def test_rmse_is_scikit_learns(data: tuple[np.ndarray, np.ndarray]) -> None:
    assert rmse(*data) == pytest.approx(sklearn.metrics.root_mean_squared_error(*data), rel=1e-12)
    assert rmse(data[0], data[0]) == 0


@given(pairs(st.floats(0, 1e6), st.floats(0, 1e6)))
def test_rmsle_is_scikit_learns(data: tuple[np.ndarray, np.ndarray]) -> None:
    assert rmsle(*data) == pytest.approx(sklearn.metrics.root_mean_squared_log_error(*data), rel=1e-12)


def test_rmsle_refuses_negative_values() -> None:
    for data in (([1.0, -0.1], [1.0, 1.0]), ([1.0, 1.0], [1.0, -0.1])):
        with pytest.raises(ValueError, match="negative"):
            rmsle(*map(np.array, data))


ANGLES = st.floats(-10, 10)


@given(st.lists(st.tuples(ANGLES, ANGLES, ANGLES, ANGLES), min_size=1, max_size=10))
def test_mean_angular_error_is_the_angle_between_rotated_poles(rows: list[tuple[float, ...]]) -> None:
    true, predicted = np.array(rows)[:, :2], np.array(rows)[:, 2:]
    poles = [Rotation.from_euler("yz", directions[:, ::-1]).as_matrix()[:, :, 2] for directions in (true, predicted)]
    # scipy's angle of the rotation from one to the other, which does not come from a cosine
    angles = [Rotation.align_vectors(one, two)[0].magnitude() for one, two in zip(*poles, strict=True)]
    assert mean_angular_error(true, predicted) == pytest.approx(np.mean(angles), abs=1e-6)
    assert mean_angular_error(true, true) == pytest.approx(0, abs=1e-6)
    assert mean_angular_error(predicted, true) == mean_angular_error(true, predicted)


@pytest.mark.parametrize(
    ("true", "predicted", "angle"),
    [
        ((0, math.pi / 2), (math.pi / 2, math.pi / 2), math.pi / 2),
        ((0, math.pi / 2), (math.pi, math.pi / 2), math.pi),
        ((0.3, 0), (5.1, 0), 0),  # at the pole every azimuth is the same direction
        ((1, 0.25), (1 + 2 * math.pi, 1), 0.75),
        ((1, -0.5), (1 + math.pi, 0.5), 0),
    ],
)
def test_mean_angular_error_of_worked_examples(true: tuple, predicted: tuple, angle: float) -> None:
    assert mean_angular_error(np.array([true]), np.array([predicted])) == pytest.approx(angle, abs=1e-7)


def _average_precision(actual: set, predicted: list, k: int) -> float:
    """Restated: precision at each place of the first k that holds a right item not seen before."""
    first = predicted[:k]
    right = [place for place, item in enumerate(first) if item in actual and item not in first[:place]]
    return (
        sum((number + 1) / (place + 1) for number, place in enumerate(right)) / min(len(actual), k) if actual else 0.0
    )


RANKINGS = st.lists(
    st.tuples(st.sets(st.integers(0, 6), max_size=5), st.lists(st.integers(0, 6), max_size=9)), min_size=1
)


@given(RANKINGS, st.integers(1, 7))
def test_mean_average_precision_at_k_is_the_mean_of_its_definition(rankings: list[Any], k: int) -> None:
    expected = [_average_precision(actual, predicted, k) for actual, predicted in rankings]
    ours = [average_precision_at_k(actual, predicted, k) for actual, predicted in rankings]
    assert ours == pytest.approx(expected)
    assert all(0 <= value <= 1 for value in ours)
    assert mean_average_precision_at_k(*zip(*rankings, strict=True), k) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize(
    ("actual", "predicted", "k", "score"),
    [
        ({"a"}, ["a"], 5, 1.0),
        ({"a"}, ["b", "a"], 5, 0.5),
        ({"a"}, ["b", "a"], 1, 0.0),
        ({"a", "b"}, ["a", "a", "b"], 5, (1 + 2 / 3) / 2),
        ({"a", "b", "c"}, ["a", "b"], 2, 1.0),
        (set(), ["a"], 5, 0.0),
        ({"a"}, [], 5, 0.0),
    ],
)
def test_average_precision_of_worked_examples(actual: set, predicted: list, k: int, score: float) -> None:
    assert average_precision_at_k(actual, predicted, k) == pytest.approx(score)


@st.composite
def mask_pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    shape = draw(array_shapes(min_dims=2, max_dims=2, max_side=8))
    return draw(arrays(np.bool_, shape)), draw(arrays(np.bool_, shape))


def _runs(mask: np.ndarray) -> Runs:
    return parse_runs(" ".join(map(str, encode_runs(mask))), mask.size)


@given(mask_pairs())
def test_dice_is_the_f1_of_pixels(masks: tuple[np.ndarray, np.ndarray]) -> None:
    predicted, true = masks
    assume(predicted.any() or true.any())
    expected = sklearn.metrics.f1_score(true.ravel(), predicted.ravel())
    assert dice_coefficient(predicted, true) == pytest.approx(expected)
    assert dice_coefficient(true, predicted) == dice_coefficient(predicted, true)
    assert dice_coefficient(predicted.astype(np.uint8), true.astype(np.uint8)) == dice_coefficient(predicted, true)


@given(mask_pairs())
def test_dice_of_runs_is_the_dice_of_their_masks(masks: tuple[np.ndarray, np.ndarray]) -> None:
    runs = [_runs(mask) for mask in masks]
    assert dice_of_runs(*runs, both_empty_value=1.0) == dice_coefficient(*masks, both_empty_value=1.0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=6), mask_pairs())
def test_runs_that_touch_count_as_their_mask(
    steps: list[tuple[int, int]], masks: tuple[np.ndarray, np.ndarray]
) -> None:
    starts = np.cumsum([0, *(length for _, length in steps)])[:-1] + np.cumsum([gap for gap, _ in steps])
    touching = Runs(starts.astype(np.int64), (starts + [length for _, length in steps]).astype(np.int64))
    true = np.zeros((64, 1), dtype=bool)
    true[: masks[0].size, 0] = masks[0].ravel()
    as_mask = decode_runs(touching, 64, 1)
    assert dice_of_runs(touching, _runs(true), 1.0) == dice_coefficient(as_mask, true, 1.0)


def test_two_empty_masks_score_what_the_caller_says() -> None:
    empty = np.zeros((2, 3), dtype=bool)
    assert math.isnan(dice_coefficient(empty, empty))
    assert math.isnan(dice_of_runs(_runs(empty), _runs(empty)))
    assert dice_coefficient(empty, empty, 1.0) == dice_of_runs(_runs(empty), _runs(empty), 1.0) == 1
    assert dice_coefficient(empty, ~empty, 1.0) == dice_of_runs(_runs(empty), _runs(~empty), 1.0) == 0


def test_masks_of_different_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in shape"):
        dice_coefficient(np.zeros((2, 3)), np.zeros((3, 2)))


def test_dice_of_a_gigapixel_slide_needs_no_mask() -> None:
    half = Runs(np.array([0]), np.array([2 * 10**10]))
    stripes = Runs(np.arange(0, 4 * 10**10, 4 * 10**6), np.arange(0, 4 * 10**10, 4 * 10**6) + 2 * 10**6)
    assert dice_of_runs(half, stripes) == 0.5


@pytest.mark.parametrize(
    ("metric", "kind"),
    [
        (lambda: accuracy(np.array([1, 0]), np.array([1, 1])), float),
        (lambda: log_loss(np.eye(2), np.eye(2)), float),
        (lambda: auroc(np.array([1, 0]), np.array([1, 0])), np.float64),
        (lambda: rmse(np.array([1, 0]), np.array([1, 1])), np.float64),
        (lambda: rmsle(np.array([1, 0]), np.array([1, 1])), np.float64),
        (lambda: mean_angular_error(np.eye(2), np.ones((2, 2))), np.float64),
        (lambda: mean_average_precision_at_k([{1}], [[1]], 1), np.float64),
    ],
)
def test_floats_are_pythons_or_numpys_as_the_published_graders_returned_them(metric: Any, kind: type) -> None:
    """`round` treats ties in the two differently, so the kind decides the fifth decimal of a score."""
    assert type(metric()) is kind
