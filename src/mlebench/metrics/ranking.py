"""Metrics of an order: scores against classes, ranked lists against sets."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np


def auroc(y_true: np.ndarray, y_score: np.ndarray) -> float:
    """Area under the ROC curve of two classes, ties counting half; higher is better.

    It is the chance that a positive has a higher score than a negative, from the ranks of all scores.
    """
    positive = np.asarray(y_true).astype(bool)
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if not positives or not negatives:
        raise ValueError("AUROC needs both classes in the truth")
    _, group, sizes = np.unique(np.asarray(y_score, dtype=float), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(sizes) - (sizes - 1) / 2)[group]
    return (ranks[positive].sum() - positives * (positives + 1) / 2) / (positives * negatives)


def mean_column_auroc(y_true: np.ndarray, y_score: np.ndarray) -> float:
    """The mean of `auroc` over columns (rows × labels), each weighing the same; higher is better."""
    return np.float64(np.mean([auroc(*columns) for columns in zip(y_true.T, y_score.T, strict=True)]))


def bias_auroc(
    y_true: np.ndarray,
    y_score: np.ndarray,
    subgroups: np.ndarray,
    *,
    power: float = -5,
    score_threshold: float | None = None,
) -> float:
    """How well scores tell classes apart whichever subgroups (rows × groups, a mask) rows are in; higher is better.

    The mean of four numbers: the AUROC of all rows, and the power means over subgroups of three AUROCs: within the
    subgroup; of its negatives and the positives outside it; of its positives and the negatives outside it. A negative
    power lets the worst subgroup count most. With a threshold, scores only say on which side of it they lie.
    """
    positive = np.asarray(y_true).astype(bool)
    score = np.asarray(y_score, dtype=float)
    if score_threshold is not None:
        score = score >= score_threshold
    aurocs = np.array(
        [
            [auroc(positive[rows], score[rows]) for rows in (inside, inside != positive, inside == positive)]
            for inside in np.asarray(subgroups).astype(bool).T
        ]
    )
    with np.errstate(divide="ignore"):  # a subgroup at 0 is infinitely bad, and makes the mean 0
        means = np.mean(aurocs**power, axis=0) ** (1 / power)
    return np.float64(np.mean([auroc(positive, score), *means]))


def average_precision_at_k(actual: Collection[Any], predicted: Sequence[Any], k: int) -> float:
    """Mean precision at the places of the first k predictions that are right; a repeated one counts once."""
    if not actual:
        return 0.0
    hits, total, seen = 0, 0.0, set()
    for place, item in enumerate(predicted[:k], start=1):
        if item in actual and item not in seen:
            hits += 1
            total += hits / place
        seen.add(item)
    return total / min(len(actual), k)


def mean_average_precision_at_k(actual: Sequence[Collection[Any]], predicted: Sequence[Sequence[Any]], k: int) -> float:
    """The mean of `average_precision_at_k` over all lists; higher is better."""
    return np.float64(np.mean([average_precision_at_k(*pair, k) for pair in zip(actual, predicted, strict=False)]))
