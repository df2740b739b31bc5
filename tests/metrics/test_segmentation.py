"""Metrics of masks against scikit-learn, scipy and hand-worked masks, and by properties."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.spatial.distance import directed_hausdorff
from support.metric_oracles import fbeta_score, jaccard_score

from mlebench.kit import RunLengths, encode_runs, parse_runs
from mlebench.metrics import (
    dice_coefficient,
    fbeta_of_runs,
    global_dice_of_runs,
    hausdorff_of_volumes,
    mean_precision_over_ious,
)

pytestmark = pytest.mark.bytes

EMPTY = RunLengths(np.array([], dtype=np.int64), np.array([], dtype=np.int64))


@st.composite
def mask_pairs(draw: st.DrawFn, dims: int = 2, side: int = 8) -> tuple[np.ndarray, np.ndarray]:
    shape = draw(array_shapes(min_dims=dims, max_dims=dims, max_side=side))
    one, other = (draw(arrays(np.bool_, shape)) for _ in range(2))
    return one, other


def _runs(mask: np.ndarray) -> RunLengths:
    return parse_runs(" ".join(map(str, encode_runs(mask))), mask.size)


def _first(pixels: int) -> RunLengths:
    """The first pixels of an image."""
    return RunLengths(np.array([0]), np.array([pixels]))


@given(mask_pairs(), st.sampled_from([0.25, 0.5, 1.0, 2.0]))
def test_fbeta_of_runs_is_scikit_learns(masks: tuple[np.ndarray, np.ndarray], beta: float) -> None:
    expected = fbeta_score(*(mask.ravel() for mask in masks), beta=beta, zero_division=0)
    assert fbeta_of_runs(*map(_runs, masks), beta=beta) == pytest.approx(expected)
    assert isinstance(fbeta_of_runs(*map(_runs, masks), beta=beta), np.float64)


def test_fbeta_below_one_favours_precision() -> None:
    assert fbeta_of_runs(_first(4), _first(2), beta=0.5) == pytest.approx(1.25 * 2 / (0.25 * 4 + 2))
    assert fbeta_of_runs(_first(4), _first(2), beta=0.5) > fbeta_of_runs(_first(2), _first(4), beta=0.5)


@given(st.lists(mask_pairs(), min_size=1, max_size=4))
def test_global_dice_is_that_of_all_images_put_together(images: list[tuple[np.ndarray, np.ndarray]]) -> None:
    predicted, true = (np.concatenate([mask.ravel() for mask in masks]) for masks in zip(*images, strict=True))
    ours = global_dice_of_runs([_runs(first) for first, _ in images], [_runs(second) for _, second in images], -1.0)
    assert ours == dice_coefficient(predicted, true, -1.0)


def test_global_dice_without_a_pixel_is_not_a_number() -> None:
    assert math.isnan(global_dice_of_runs([EMPTY, EMPTY], [EMPTY, EMPTY]))


@pytest.mark.parametrize(
    ("true", "predicted", "score"),
    [
        (EMPTY, EMPTY, 1.0),
        (EMPTY, _first(1), 0.0),
        (_first(100), EMPTY, 0.0),
        (_first(100), _first(100), 1.0),
        (_first(100), _first(50), 0.0),  # 0.5 does not exceed 0.5
        (_first(100), _first(51), 0.1),
        (_first(51), _first(100), 0.1),
        (_first(100), _first(72), 0.5),
        (_first(100), _first(95), 0.9),
        (_first(100), _first(96), 1.0),
        (_first(50), RunLengths(np.array([50]), np.array([60])), 0.0),
    ],
)
def test_precision_is_the_share_of_thresholds_that_an_iou_exceeds(
    true: RunLengths, predicted: RunLengths, score: float
) -> None:
    assert mean_precision_over_ious([true], [predicted]) == score
    assert mean_precision_over_ious([true, EMPTY], [predicted, EMPTY]) == pytest.approx((score + 1) / 2)
    assert isinstance(mean_precision_over_ious([true], [predicted]), np.float64)


@given(st.lists(mask_pairs(), min_size=1, max_size=4))
def test_ious_are_scikit_learns(images: list[tuple[np.ndarray, np.ndarray]]) -> None:
    scores = []
    for true, predicted in images:
        iou = jaccard_score(true.ravel(), predicted.ravel(), zero_division=0)
        exceeded = np.mean([iou > threshold for threshold in np.arange(0.5, 1, 0.05)])
        scores.append(exceeded if true.any() else float(not predicted.any()))
    runs = [[_runs(mask) for mask in masks] for masks in zip(*images, strict=True)]
    assert mean_precision_over_ious(*runs) == pytest.approx(np.mean(scores))


def test_an_empty_prediction_may_count_as_the_whole_image() -> None:
    for truth in (60, 98, 100):
        assert mean_precision_over_ious([_first(truth)], [EMPTY]) == 0
        stretched = mean_precision_over_ious([_first(truth)], [EMPTY], pixels_of_empty_prediction=100)
        assert stretched == mean_precision_over_ious([_first(truth)], [_first(100)])
    assert mean_precision_over_ious([EMPTY], [EMPTY], pixels_of_empty_prediction=100) == 1
    assert mean_precision_over_ious([_first(9)], [_first(9)], pixels_of_empty_prediction=100) == 1


def _hausdorff(true: np.ndarray, predicted: np.ndarray) -> float:
    """As scipy has it."""
    ours, theirs = (np.argwhere(mask) / true.shape for mask in (true, predicted))
    return max(directed_hausdorff(ours, theirs)[0], directed_hausdorff(theirs, ours)[0]) / math.sqrt(true.ndim)


@given(mask_pairs(dims=3, side=6))
def test_hausdorff_of_dense_volumes_is_scipys(masks: tuple[np.ndarray, np.ndarray]) -> None:
    true, predicted = masks
    ours = hausdorff_of_volumes(true, predicted)
    if true.any() and predicted.any():
        assert ours == pytest.approx(_hausdorff(true, predicted))
    elif true.any() or predicted.any():
        assert ours == 1
    else:
        assert math.isnan(ours)


POINTS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 30), st.integers(0, 19)), min_size=1, max_size=20)


@given(POINTS, POINTS)
def test_hausdorff_of_sparse_volumes_is_scipys(true_points: list[tuple], points: list[tuple]) -> None:
    true, predicted = np.zeros((9, 31, 20), dtype=bool), np.zeros((9, 31, 20), dtype=bool)
    true[tuple(np.array(true_points).T)] = True
    predicted[tuple(np.array(points).T)] = True
    assert hausdorff_of_volumes(true, predicted) == pytest.approx(_hausdorff(true, predicted))
    assert hausdorff_of_volumes(predicted, true) == hausdorff_of_volumes(true, predicted)
    assert hausdorff_of_volumes(true, true) == 0


@pytest.mark.parametrize("seed", range(4))
def test_hausdorff_of_bodies_with_outliers_is_scipys(seed: int) -> None:
    rng = np.random.RandomState(seed)
    z, y, x = np.ogrid[:20, :40, :40]
    true = (z - 9) ** 2 / 30 + (y - 18) ** 2 / 90 + (x - 20) ** 2 / 120 < 1
    predicted = np.roll(true, rng.randint(0, 9), axis=rng.randint(3)) | (rng.rand(20, 40, 40) < 0.0003)
    assert hausdorff_of_volumes(true, predicted) == pytest.approx(_hausdorff(true, predicted))


def test_hausdorff_takes_the_true_volume_for_a_unit_cube() -> None:
    true, predicted = np.zeros((4, 10, 20), dtype=bool), np.zeros((4, 10, 20), dtype=bool)
    true[0, 0, 0] = predicted[1, 5, 5] = True
    expected = math.sqrt((1 / 4) ** 2 + (5 / 10) ** 2 + (5 / 20) ** 2) / math.sqrt(3)
    assert hausdorff_of_volumes(true, predicted) == pytest.approx(expected)
    higher = np.concatenate([predicted, np.zeros((3, 10, 20), dtype=bool)])  # slices that the truth does not have
    assert hausdorff_of_volumes(true, higher) == pytest.approx(expected)
    lower = predicted[:2]
    assert hausdorff_of_volumes(true, lower) == pytest.approx(expected)


def test_a_prediction_may_be_too_large_to_be_measured() -> None:
    true, predicted = np.zeros((1, 1, 20), dtype=bool), np.zeros((1, 1, 20), dtype=bool)
    true[..., :1] = predicted[..., :10] = True
    measured = hausdorff_of_volumes(true, predicted)
    assert measured == pytest.approx(9 / 20 / math.sqrt(3))
    assert hausdorff_of_volumes(true, predicted, hopeless_ratio=10) == measured
    predicted[..., 10] = True
    assert hausdorff_of_volumes(true, predicted, hopeless_ratio=10) == 1
    assert hausdorff_of_volumes(predicted, true, hopeless_ratio=10) < 1
