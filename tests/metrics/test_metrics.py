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
from scipy.stats import mannwhitneyu, pearsonr, spearmanr
from support.metric_oracles import f1_score, jaccard_score

from mlebench.kit import RunLengths, decode_runs, encode_runs, parse_runs
from mlebench.metrics import (
    accuracy,
    auroc,
    average_precision_at_k,
    binary_log_loss,
    dice_coefficient,
    dice_of_runs,
    log_loss,
    macro_f1,
    matthews_correlation,
    mean_absolute_error,
    mean_angular_error,
    mean_average_precision_at_k,
    mean_column_auroc,
    mean_column_spearman,
    mean_levenshtein,
    mean_reciprocal_rank_at_k,
    micro_f1_of_tags,
    pearson,
    quadratic_weighted_kappa,
    rmse,
    rmsle,
    word_jaccard,
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


TAGS = st.lists(st.sampled_from(["c#", "c", "C", "java", "é"]), max_size=4)


@given(pairs(LABELS, st.integers(-2, 5)) | pairs(st.sampled_from("ab"), st.sampled_from("abc")) | pairs(LABELS, SMALL))
def test_macro_f1_is_scikit_learns(data: tuple[np.ndarray, np.ndarray]) -> None:
    names = {value: f"{value}" for value in np.concatenate(data).tolist()}  # scikit-learn takes no fractions as labels
    true, predicted = ([names[value] for value in part.tolist()] for part in data)
    assert macro_f1(*data) == pytest.approx(sklearn.metrics.f1_score(true, predicted, average="macro"), abs=1e-15)
    if data[1].dtype.kind == "i":
        assert macro_f1(*data) == sklearn.metrics.f1_score(*data, average="macro")
    assert type(macro_f1(*data)) is np.float64


def test_macro_f1_of_many_classes_needs_no_loop_over_them() -> None:
    rng = np.random.RandomState(0)
    true, predicted = rng.randint(0, 65_000, (2, 400_000))
    assert macro_f1(true, true) == 1
    assert macro_f1(true, predicted) < 0.01


@given(st.lists(st.tuples(TAGS, TAGS), min_size=1, max_size=12), st.booleans())
def test_micro_f1_of_tags_is_scikit_learns(rows: list[tuple[list[str], list[str]]], ignore_unknown: bool) -> None:
    truth, guess = (np.array([" ".join(row[side]) for row in rows], dtype=object) for side in (0, 1))
    classes = {tag for row in rows for tag in row[0] + ([] if ignore_unknown else row[1])}
    classes |= {"never", "used"}  # scikit-learn takes a single column for something else
    true, predicted = ([[tag in row[side] for tag in classes] for row in rows] for side in (0, 1))
    ours = micro_f1_of_tags(truth, guess, ignore_unknown=ignore_unknown)
    assert isinstance(ours, np.float64)
    assert ours == f1_score(np.array(true), np.array(predicted), average="micro", zero_division=0)


def test_tags_are_words_that_count_once_a_row() -> None:
    truth, guess = np.array(["a b", "", "c"], dtype=object), np.array(["b  b\ta\n", "x", "a c c"], dtype=object)
    assert micro_f1_of_tags(truth, guess) == 6 / 8
    assert micro_f1_of_tags(truth, guess, ignore_unknown=True) == 6 / 7


@given(
    pairs(LABELS, LABELS)
    | pairs(st.booleans(), st.booleans())
    | pairs(st.booleans(), st.integers(0, 1).map(float))
    | pairs(st.sampled_from("ab"), st.sampled_from("abc"))
)
def test_matthews_correlation_is_scikit_learns(data: tuple[np.ndarray, np.ndarray]) -> None:
    assume(len(set(np.concatenate(data).tolist())) > 1)  # of one class, scikit-learn warns
    ours = matthews_correlation(*data)
    assert ours == pytest.approx(sklearn.metrics.matthews_corrcoef(*data), abs=1e-12)
    assert matthews_correlation(*data[::-1]) == pytest.approx(ours, abs=1e-12)
    assert -1 - 1e-12 <= ours <= 1 + 1e-12


@given(pairs(st.booleans(), st.booleans()))
def test_matthews_correlation_of_two_classes_is_pearsons(data: tuple[np.ndarray, np.ndarray]) -> None:
    assume(all(_both_classes(side) for side in data))
    assert matthews_correlation(*data) == pytest.approx(np.corrcoef(*data)[0, 1], abs=1e-9)
    assert matthews_correlation(data[0], ~data[1]) == pytest.approx(-matthews_correlation(*data), abs=1e-12)
    assert matthews_correlation(data[0], data[0]) == 1


def test_matthews_correlation_of_a_constant_is_nothing() -> None:
    for truth, guess in (([0, 1, 1], [0, 0, 0]), ([1, 1], [0, 1]), ([1, 1], [1, 1])):
        assert matthews_correlation(np.array(truth), np.array(guess)) == 0


def test_matthews_correlation_of_many_rows_does_not_overflow() -> None:
    truth = np.arange(5_000_000) % 64 == 0
    assert matthews_correlation(truth, truth) == 1


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
def label_columns(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    shape = draw(st.integers(2, 20)), draw(st.integers(2, 5))
    truth, score = draw(arrays(np.int64, shape, elements=st.integers(0, 1))), draw(arrays(float, shape, elements=SMALL))
    truth[0], truth[1] = 0, 1
    return truth, score


@given(label_columns())
def test_mean_column_auroc_is_scikit_learns_macro_average(data: tuple[np.ndarray, np.ndarray]) -> None:
    truth, score = data
    ours = mean_column_auroc(truth, score)
    assert ours == pytest.approx(sklearn.metrics.roc_auc_score(truth, score, average="macro"), abs=1e-12)
    assert mean_column_auroc(truth[:, ::-1], score[:, ::-1]) == pytest.approx(ours, abs=1e-12)
    assert mean_column_auroc(truth[:, :1], score[:, :1]) == auroc(truth[:, 0], score[:, 0])
    assert mean_column_auroc(truth, truth) == 1


def test_mean_column_auroc_needs_a_score_for_every_label_and_both_classes_in_each() -> None:
    truth = np.array([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="zip"):
        mean_column_auroc(truth, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="both classes"):
        mean_column_auroc(np.array([[0, 1], [1, 1]]), np.zeros((2, 2)))


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


@given(pairs(st.booleans(), st.floats(0, 1)), st.booleans())
def test_binary_log_loss_is_scikit_learns(data: tuple[np.ndarray, np.ndarray], whole: bool) -> None:
    truth, probabilities = data[0].astype(int), data[1].round().astype(int) if whole else data[1]
    expected = sklearn.metrics.log_loss(truth, probabilities, labels=[0, 1])
    assert binary_log_loss(truth, probabilities) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_log_loss_is_finite_where_the_truth_was_given_no_chance_and_rows_are_not_normalised() -> None:
    assert log_loss(np.array([[1, 0]]), np.array([[0.0, 1.0]])) == pytest.approx(-math.log(np.finfo(float).eps))
    assert log_loss(np.array([[1, 0]]), np.array([[0.25, 0.25]])) == pytest.approx(math.log(4))


RATINGS = st.sampled_from([-3, 0, 1, 2, 5, 1000])


@given(pairs(RATINGS, RATINGS))
def test_quadratic_weighted_kappa_is_scikit_learns(data: tuple[np.ndarray, np.ndarray]) -> None:
    assume(len(np.unique(np.concatenate(data))) > 1)
    ours = quadratic_weighted_kappa(*data)
    # in the order of arguments of the published graders the last bit is theirs too
    assert ours == sklearn.metrics.cohen_kappa_score(*data[::-1], weights="quadratic")
    assert quadratic_weighted_kappa(*data[::-1]) == pytest.approx(ours)
    assert quadratic_weighted_kappa(*(part.astype(float) for part in data)) == ours
    assert ours <= 1


@given(pairs(RATINGS, RATINGS))
def test_quadratic_weighted_kappa_is_one_for_equal_ratings_and_depends_on_their_order_only(
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    assume(len(np.unique(data[0])) > 1)
    assert quadratic_weighted_kappa(data[0], data[0]) == 1
    assert quadratic_weighted_kappa(*(7 * part - 2 for part in data)) == quadratic_weighted_kappa(*data)


def test_quadratic_weighted_kappa_of_worked_examples() -> None:
    truth = np.array([0, 1, 2, 2])
    assert quadratic_weighted_kappa(truth, np.zeros(4)) == 0
    assert quadratic_weighted_kappa(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0])) == -1
    # one of four is wrong by one; by chance the costs of the 16 pairs sum to 20, so 4 pairs cost 20 / 4
    assert quadratic_weighted_kappa(truth, np.array([0, 1, 2, 1])) == pytest.approx(1 - 4 / 20)
    # 3 and 9 are neighbours where nothing between them occurs
    assert quadratic_weighted_kappa(np.array([0, 3, 9, 9]), np.array([0, 3, 9, 3])) == pytest.approx(1 - 4 / 20)


def test_quadratic_weighted_kappa_of_one_class_is_not_a_number() -> None:
    assert math.isnan(quadratic_weighted_kappa(np.full(3, 2), np.full(3, 2)))


@given(pairs(RATINGS, RATINGS))
def test_quadratic_weighted_kappa_by_value_is_scikit_learns_with_all_classes(
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    ours = quadratic_weighted_kappa(*data, by_value=True)
    if len(np.unique(np.concatenate(data))) == 1:
        assert ours == 0
        return
    classes = np.arange(min(map(np.min, data)), max(map(np.max, data)) + 1)
    theirs = sklearn.metrics.cohen_kappa_score(*data, labels=classes, weights="quadratic")
    assert ours == pytest.approx(theirs, abs=1e-12)


FLOATS = st.floats(-1e6, 1e6)


@given(pairs(FLOATS, FLOATS))
def test_mean_absolute_error_is_scikit_learns(data: tuple[np.ndarray, np.ndarray]) -> None:
    ours = mean_absolute_error(*data)
    assert ours == pytest.approx(sklearn.metrics.mean_absolute_error(*data), rel=1e-12)
    assert isinstance(ours, np.float64)
    assert mean_absolute_error(*data[::-1]) == ours
    assert mean_absolute_error(data[0], data[0]) == mean_absolute_error(data[0], data[0], scaled=True) == 0
    assert mean_absolute_error(*data, scaled=True) == pytest.approx(ours, rel=1e-12)


def test_a_scaled_mean_absolute_error_of_huge_errors_is_finite() -> None:
    assert mean_absolute_error(np.zeros(3), np.full(3, -1.7e308), scaled=True) == pytest.approx(1.7e308)


@given(pairs(FLOATS, FLOATS))
def test_rmse_is_scikit_learns(data: tuple[np.ndarray, np.ndarray]) -> None:
    assert rmse(*data) == pytest.approx(sklearn.metrics.root_mean_squared_error(*data), rel=1e-12)
    assert rmse(data[0], data[0]) == 0
    assert rmse(data[0], data[0], scaled=True) == 0
    assert rmse(*data, scaled=True) == pytest.approx(rmse(*data), rel=1e-12)


def test_a_scaled_rmse_of_huge_errors_is_finite() -> None:
    assert rmse(np.array([2.5, 3]), np.array([2.5, 1e300])) == np.inf
    assert rmse(np.array([2.5, 3]), np.array([2.5, 1e300]), scaled=True) == pytest.approx(1e300 / np.sqrt(2))


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
    actual, predicted = zip(*rankings, strict=True)
    assert mean_average_precision_at_k(actual, predicted, k) == pytest.approx(np.mean(expected))


@given(
    st.lists(st.tuples(st.integers(0, 6), st.lists(st.integers(0, 6), max_size=9)), min_size=1, max_size=40),
    st.integers(1, 7),
)
def test_with_one_right_item_it_is_the_mean_reciprocal_rank_to_the_last_bit(rankings: list[Any], k: int) -> None:
    actual, predicted = zip(*rankings, strict=True)
    reciprocal = mean_reciprocal_rank_at_k(actual, predicted, k)
    assert reciprocal == mean_average_precision_at_k([{item} for item in actual], predicted, k)


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


def _runs(mask: np.ndarray) -> RunLengths:
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
    touching = RunLengths(starts.astype(np.int64), (starts + [length for _, length in steps]).astype(np.int64))
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
    half = RunLengths(np.array([0]), np.array([2 * 10**10]))
    stripes = RunLengths(np.arange(0, 4 * 10**10, 4 * 10**6), np.arange(0, 4 * 10**10, 4 * 10**6) + 2 * 10**6)
    assert dice_of_runs(half, stripes) == 0.5


def _is_constant(values: np.ndarray) -> bool:
    return len(set(values.tolist())) == 1


@given(pairs(SMALL | FLOATS, SMALL | FLOATS))
def test_pearson_is_scipys(data: tuple[np.ndarray, np.ndarray]) -> None:
    assume(not any(map(_is_constant, data)))
    # scipy warns of values so close together that it loses digits, and there so do we
    assume(all(np.ptp(values) > 1e-6 * np.abs(values).max() for values in data))
    ours = pearson(*data)
    assert ours == pytest.approx(pearsonr(*data)[0], abs=1e-9)
    assert pearson(*data[::-1]) == pytest.approx(ours, abs=1e-12)
    assert pearson(data[0], -2 * data[1]) == pytest.approx(-ours, abs=1e-9)
    assert pearson(data[0], data[0]) == pytest.approx(1)


@pytest.mark.parametrize("other", [[0.1, 0.1, 0.1], [1, np.nan, 2], [1, np.inf, 2], [-np.inf, np.inf, 2], [1e308] * 3])
def test_pearson_of_a_constant_or_of_what_is_not_finite_is_nan(other: list[float]) -> None:
    for data in ((np.arange(3), np.array(other)), (np.array(other), np.arange(3)), (np.array(other),) * 2):
        assert math.isnan(pearson(*data))
        assert pearson(*data, undefined_value=0) == 0


def test_pearson_of_very_large_and_very_small_numbers() -> None:
    truth = np.array([0.0, 0.25, 1.0])
    for scale in (1e200, 1e-200, 1e-310):
        assert pearson(truth, scale * truth) == pytest.approx(1)


@st.composite
def column_pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    shape = (draw(COUNT), draw(st.integers(1, 4)))
    return draw(arrays(float, shape, elements=SMALL)), draw(arrays(float, shape, elements=SMALL))


@given(column_pairs())
def test_mean_column_spearman_is_scipys(data: tuple[np.ndarray, np.ndarray]) -> None:
    columns = list(zip(*(side.T for side in data), strict=True))
    assume(not any(_is_constant(column) for pair in columns for column in pair))
    ours = mean_column_spearman(*data)
    assert ours == pytest.approx(np.array([spearmanr(*pair)[0] for pair in columns]).mean(), abs=1e-12)
    assert mean_column_spearman(data[0], np.exp(3 * data[1])) == ours
    assert mean_column_spearman(data[0], data[1].astype(object)) == ours


def test_mean_column_spearman_needs_every_column_to_vary_and_to_have_no_gap() -> None:
    truth = np.array([[1.0, 3.0], [2.0, 1.0], [3.0, 2.0]])
    assert mean_column_spearman(truth, truth) == pytest.approx(1)
    assert mean_column_spearman(truth, np.array([[-np.inf, 9.0], [0.0, 7.0], [np.inf, 8.0]])) == pytest.approx(1)
    for column in ([5.0, 5.0, 5.0], [1.0, np.nan, 2.0], ["b", "b", "b"], ["a", np.nan, "c"]):
        guess = truth.astype(object)
        guess[:, 1] = column
        assert math.isnan(mean_column_spearman(truth, guess))
        assert mean_column_spearman(truth, guess, undefined_value=0) == pytest.approx(0.5)


def test_text_ranks_by_its_letters_as_scipy_has_it() -> None:
    words = np.array(["b", "a", "B", "10", "9", "é", "a"], dtype=object)
    truth = np.array([1.0, 4, 4, 0.5, 2, 3, 7])
    expected = spearmanr(words, truth)[0]
    assert mean_column_spearman(truth[:, None], words[:, None]) == pytest.approx(expected, abs=1e-12)


SENTENCES = st.lists(st.sampled_from(["so", "SO", "sad", "Süß", "சரி", "!"]), max_size=5).map(" ".join)


@given(st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=12), st.sampled_from([0.0, 1.0]))
def test_word_jaccard_is_scikit_learns(rows: list[tuple[str, str]], both_empty: float) -> None:
    sides = [np.array(side, dtype=object) for side in zip(*rows, strict=True)]
    words = sorted({word for row in rows for text in row for word in text.lower().split()})
    true, predicted = (np.array([[w in text.lower().split() for w in [*words, "", " "]] for text in x]) for x in sides)
    expected = jaccard_score(true, predicted, average="samples", zero_division=both_empty)
    assert word_jaccard(*sides, both_empty_value=both_empty) == pytest.approx(expected, abs=1e-15)
    assert word_jaccard(*sides[::-1], both_empty_value=both_empty) == word_jaccard(*sides, both_empty_value=both_empty)


@pytest.mark.parametrize(
    ("true", "predicted", "score"),
    [
        ("so sad", "Sad", 1 / 2),
        ("so sad", "so  so\tSAD\n", 1.0),
        ("so sad", "very sad!", 0.0),
        ("so sad today", "not so sad", 2 / 4),
        ("so sad", " ", 0.0),
        ("", "so", 0.0),
        ("", " ", 0.25),
    ],
)
def test_word_jaccard_of_worked_examples(true: str, predicted: str, score: float) -> None:
    texts = (np.array([text], dtype=object) for text in (true, predicted))
    assert word_jaccard(*texts, both_empty_value=0.25) == score


def test_word_jaccard_of_two_empty_texts_is_undefined_unless_the_caller_says() -> None:
    truth, guess = np.array(["a", ""], dtype=object), np.array(["a", "  "], dtype=object)
    assert math.isnan(word_jaccard(truth, guess))
    assert word_jaccard(truth, guess, both_empty_value=0.0) == 0.5


def _edits(one: str, two: str) -> int:
    """Restated: distances between all beginnings of two texts, each from those of shorter ones."""
    row = list(range(len(two) + 1))
    for place, letter in enumerate(one, start=1):
        above, row = row, [place]
        for column, other in enumerate(two, start=1):
            row.append(min(above[column] + 1, row[-1] + 1, above[column - 1] + (letter != other)))
    return row[-1]


TEXTS = st.text("abC1/é你🙂", max_size=12) | st.text("ab", min_size=60, max_size=80)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=10))
def test_mean_levenshtein_is_the_mean_of_its_definition(rows: list[tuple[str, str]]) -> None:
    truth, guess = (np.array(side, dtype=object) for side in zip(*rows, strict=True))
    expected = np.mean([_edits(*row) for row in rows])
    assert mean_levenshtein(truth, guess) == expected == mean_levenshtein(guess, truth)
    assert mean_levenshtein(truth, truth) == 0


@pytest.mark.parametrize(
    ("true", "predicted", "distance"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "ABC", 3), ("InChI=1S/H2O/h1H2", "nan", 16), ("ab", "ba", 2)],
)
def test_levenshtein_of_worked_examples(true: str, predicted: str, distance: int) -> None:
    assert mean_levenshtein(np.array([true, "x"], dtype=object), np.array([predicted, "x"], dtype=object)) == (
        distance / 2
    )


@pytest.mark.parametrize(
    ("metric", "kind"),
    [
        (lambda: accuracy(np.array([1, 0]), np.array([1, 1])), float),
        (lambda: log_loss(np.eye(2), np.eye(2)), float),
        (lambda: binary_log_loss(np.array([1, 0]), np.array([1, 0])), float),
        (lambda: quadratic_weighted_kappa(np.array([1, 0]), np.array([1, 1])), np.float64),
        (lambda: quadratic_weighted_kappa(np.array([1, 1]), np.array([1, 1])), np.float64),
        (lambda: auroc(np.array([1, 0]), np.array([1, 0])), np.float64),
        (lambda: mean_column_auroc(np.eye(2), np.eye(2)), np.float64),
        (lambda: rmse(np.array([1, 0]), np.array([1, 1])), np.float64),
        (lambda: rmsle(np.array([1, 0]), np.array([1, 1])), np.float64),
        (lambda: mean_angular_error(np.eye(2), np.ones((2, 2))), np.float64),
        (lambda: mean_average_precision_at_k([{1}], [[1]], 1), np.float64),
        (lambda: mean_reciprocal_rank_at_k([1], [[1]], 1), np.float64),
        (lambda: pearson(np.array([1, 0]), np.array([1, 0])), np.float64),
        (lambda: pearson(np.array([1, 0]), np.array([1, 1])), np.float64),
        (lambda: mean_column_spearman(np.eye(2), np.eye(2)), np.float64),
        (lambda: word_jaccard(np.array(["a"]), np.array(["a"])), float),
        (lambda: mean_levenshtein(np.array(["a"]), np.array(["b"])), np.float64),
    ],
)
def test_floats_are_pythons_or_numpys_as_the_published_graders_returned_them(metric: Any, kind: type) -> None:
    """`round` treats ties in the two differently, so the kind decides the fifth decimal of a score."""
    assert type(metric()) is kind
