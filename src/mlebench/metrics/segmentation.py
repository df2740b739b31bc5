"""Metrics of masks, as arrays or as runs of pixels: (starts, ends) of sorted, disjoint pixel ranges."""

from collections.abc import Sequence

import numpy as np

Ranges = tuple[np.ndarray, np.ndarray]
LOOK_AROUND = 4  # voxels to each side
SAMPLE = 64  # voxels that show whether looking around pays off


def dice_coefficient(
    predicted_mask: np.ndarray, true_mask: np.ndarray, both_empty_value: float = float("nan")
) -> float:
    """Twice the overlap of two binary masks over the sum of their areas; higher is better."""
    if predicted_mask.shape != true_mask.shape:
        raise ValueError(f"masks differ in shape: {predicted_mask.shape} and {true_mask.shape}")
    areas = int(predicted_mask.sum()) + int(true_mask.sum())
    return 2 * int((predicted_mask * true_mask).sum()) / areas if areas else both_empty_value


def dice_of_runs(predicted: Ranges, true: Ranges, both_empty_value: float = float("nan")) -> float:
    """`dice_coefficient` of masks given as runs: no mask is built."""
    return global_dice_of_runs([predicted], [true], both_empty_value)


def global_dice_of_runs(
    predicted: Sequence[Ranges], true: Sequence[Ranges], both_empty_value: float = float("nan")
) -> float:
    """The Dice coefficient of all images together, as if they were one; higher is better."""
    areas = sum(map(_area, predicted)) + sum(map(_area, true))
    return 2 * sum(map(_overlap, predicted, true)) / areas if areas else both_empty_value


def fbeta_of_runs(true: Ranges, predicted: Ranges, beta: float) -> float:
    """F-beta of pixels: a weighted harmonic mean of precision and recall; higher is better, 0 where both are empty.

    It is (1 + beta²) · overlap / (beta² · true area + predicted area). A beta below 1 favours precision.
    """
    weighted_areas = beta**2 * _area(true) + _area(predicted)
    return np.float64((1 + beta**2) * _overlap(true, predicted) / weighted_areas if weighted_areas else 0)


def mean_precision_over_ious(
    true: Sequence[Ranges], predicted: Sequence[Ranges], *, pixels_of_empty_prediction: int = 0
) -> float:
    """The mean over images of the share of the thresholds 0.5, 0.55, …, 0.95 that their IoU exceeds; higher is better.

    IoU is the overlap of truth and prediction over the area that either covers. An image whose truth is empty scores 1
    if its prediction is empty, otherwise 0. Published scores were made as if a prediction without pixels, of a truth
    with some, were one of the whole image: `pixels_of_empty_prediction` says how many pixels that is.
    """
    true_areas, areas = (np.array(list(map(_area, masks))) for masks in (true, predicted))
    overlaps = np.array(list(map(_overlap, true, predicted)))
    if pixels_of_empty_prediction:
        stretched = (areas == 0) & (true_areas > 0)
        areas = np.where(stretched, pixels_of_empty_prediction, areas)
        overlaps = np.where(stretched, true_areas, overlaps)
    ious = overlaps / np.maximum(true_areas + areas - overlaps, 1)
    exceeded = (ious[:, None] > np.arange(0.5, 1.0, 0.05)).sum(axis=1) / 10
    return np.float64(np.mean(np.where(true_areas == 0, areas == 0, exceeded)))


def _area(runs: Ranges) -> int:
    starts, ends = runs
    return int((ends - starts).sum())


def _overlap(ranges: Ranges, other: Ranges) -> int:
    """How many pixels both have."""
    starts, ends = ranges
    return int((_covered(other, ends) - _covered(other, starts)).sum())


def _covered(runs: Ranges, pixels: np.ndarray) -> np.ndarray:
    """For each pixel number, how many pixels of the runs come before it."""
    starts, ends = runs
    if not len(starts):
        return np.zeros(len(pixels), dtype=np.int64)
    before = np.concatenate([[0], np.cumsum(ends - starts)])
    run = np.searchsorted(starts, pixels, side="right") - 1
    partial = np.clip(pixels - starts[run], 0, (ends - starts)[run])
    return np.where(run < 0, 0, before[run] + partial)


def hausdorff_of_volumes(true: np.ndarray, predicted: np.ndarray, *, hopeless_ratio: float = float("inf")) -> float:
    """How far apart two masks of one box (slices × rows × columns) are, from 0 to 1; lower is better.

    It is the Hausdorff distance, the largest distance from a voxel of either mask to the nearest of the other, where
    the box of the truth is a unit cube, over the diagonal of that cube. NaN if both masks are empty, 1 if one of them
    is. A prediction whose volume is more than `hopeless_ratio` times the true one scores 1, however near it is.
    """
    volume, true_volume = int(predicted.sum()), int(true.sum())
    if not volume and not true_volume:
        return float("nan")
    if not volume or not true_volume or volume > hopeless_ratio * true_volume:
        return 1.0
    true_grid, grid = _on_one_grid(true.astype(bool), predicted.astype(bool))
    squares = (_farthest_square(*grids, 1 / np.array(true.shape)) for grids in ((true_grid, grid), (grid, true_grid)))
    return np.sqrt(max(squares)) / np.sqrt(true.ndim)


def _on_one_grid(*masks: np.ndarray) -> list[np.ndarray]:
    """Masks padded to one box, all starting at its first corner."""
    shape = np.max([mask.shape for mask in masks], axis=0)
    return [np.pad(mask, [(0, wide - own) for wide, own in zip(shape, mask.shape, strict=True)]) for mask in masks]


def _farthest_square(mask: np.ndarray, other: np.ndarray, spacing: np.ndarray) -> float:
    """The largest squared distance from a voxel of one mask to the nearest of another, which is not empty.

    Most voxels find their nearest one at once by looking around, nearest places first, unless masks are far apart. Of
    the rest, the voxel with the largest possible distance is measured, repeatedly: the voxel nearest to it is also near
    enough to others to rule them out.
    """
    padded = np.pad(other, LOOK_AROUND)
    remaining = np.flatnonzero(np.pad(mask & ~other, LOOK_AROUND))
    farthest = 0.0
    around = _steps_around(padded.shape, spacing)
    sample = remaining[:: len(remaining) // SAMPLE + 1]
    far_apart = not padded.ravel()[sample[:, None] + [step for _, step in around]].any(axis=1).all()
    for square, step in () if far_apart else around:
        touched = padded.ravel()[remaining + step]
        if touched.any():
            farthest, remaining = square, remaining[~touched]
        if not len(remaining):
            return farthest
    points, other_points = (
        np.array(np.unravel_index(places, padded.shape)) * spacing[:, None]
        for places in (remaining, np.flatnonzero(padded))
    )
    bounds = np.full(len(remaining), np.inf)
    while len(bounds):
        squares = _squares(other_points, points[:, np.argmax(bounds)])
        nearest = np.argmin(squares)
        farthest = max(farthest, float(squares[nearest]))
        bounds = np.minimum(bounds, _squares(points, other_points[:, nearest]))
        running = bounds > farthest
        points, bounds = points[:, running], bounds[running]
    return farthest


def _steps_around(shape: tuple[int, ...], spacing: np.ndarray) -> list[tuple[float, int]]:
    """From any voxel of a box, the squared distances and the steps, in flat numbers, to those around it.

    Nearest first, and only as far as no voxel is left out.
    """
    offsets = np.indices((2 * LOOK_AROUND + 1,) * len(shape)).reshape(len(shape), -1) - LOOK_AROUND
    squares = np.square(offsets * spacing[:, None]).sum(axis=0)
    strides = np.cumprod([1, *shape[:0:-1]])[::-1]
    reliable = squares < np.square((LOOK_AROUND + 1) * spacing.min())
    nearest_first = np.argsort(squares[reliable], kind="stable")
    return list(
        zip(squares[reliable][nearest_first].tolist(), (strides @ offsets)[reliable][nearest_first], strict=True)
    )


def _squares(points: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Squared distances of points (axes × points) from one."""
    return np.square(points - point[:, None]).sum(axis=0)
