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
