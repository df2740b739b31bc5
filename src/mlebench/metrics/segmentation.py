"""Metrics of masks, as arrays or as runs of pixels."""

import numpy as np


def dice_coefficient(
    predicted_mask: np.ndarray, true_mask: np.ndarray, both_empty_value: float = float("nan")
) -> float:
    """Twice the overlap of two binary masks over the sum of their areas; higher is better."""
    if predicted_mask.shape != true_mask.shape:
        raise ValueError(f"masks differ in shape: {predicted_mask.shape} and {true_mask.shape}")
    areas = int(predicted_mask.sum()) + int(true_mask.sum())
    return 2 * int((predicted_mask * true_mask).sum()) / areas if areas else both_empty_value


def dice_of_runs(
    predicted: tuple[np.ndarray, np.ndarray],
    true: tuple[np.ndarray, np.ndarray],
    both_empty_value: float = float("nan"),
) -> float:
    """`dice_coefficient` of masks given as (starts, ends) of sorted, disjoint pixel ranges: no mask is built."""
    areas = sum(int((ends - starts).sum()) for starts, ends in (predicted, true))
    if not areas:
        return both_empty_value
    overlap = int((_covered(true, predicted[1]) - _covered(true, predicted[0])).sum())
    return 2 * overlap / areas


def _covered(runs: tuple[np.ndarray, np.ndarray], pixels: np.ndarray) -> np.ndarray:
    """For each pixel number, how many pixels of the runs lie before it."""
    starts, ends = runs
    if not len(starts):
        return np.zeros(len(pixels), dtype=np.int64)
    before = np.concatenate([[0], np.cumsum(ends - starts)])
    run = np.searchsorted(starts, pixels, side="right") - 1
    partial = np.clip(pixels - starts[run], 0, (ends - starts)[run])
    return np.where(run < 0, 0, before[run] + partial)
