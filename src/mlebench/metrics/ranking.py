"""Metrics of an order: scores against classes, ranked lists against sets."""

from array import array
from collections.abc import Collection, Iterable, Sequence
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
    ranks = mean_ranks(np.asarray(y_score, dtype=float))
    return (ranks[positive].sum() - positives * (positives + 1) / 2) / (positives * negatives)


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each value, from 1 on; equal values share the mean of their ranks."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(sizes) - (sizes - 1) / 2)[group]


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
    power makes the worst subgroup count most. With a threshold, only the side of it that a score is on counts.
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


def average_precision(y_true: np.ndarray, y_score: np.ndarray) -> float:
    """Mean of the precisions at each score, weighted by how much recall grows there; higher is better.

    Rows with the same score come together. Nothing is interpolated.
    """
    positive, score = np.asarray(y_true).astype(bool), np.asarray(y_score, dtype=float)
    order = np.argsort(-score, kind="stable")
    last_of_score = np.append(np.flatnonzero(np.diff(score[order])), len(order) - 1)
    hits = np.cumsum(positive[order])[last_of_score]
    if not hits[-1]:
        raise ValueError("average precision needs a positive in the truth")
    return np.sum(np.diff(hits / hits[-1], prepend=0) * hits / (last_of_score + 1))


def label_weighted_ranking_precision(y_true: np.ndarray, y_score: np.ndarray) -> float:
    """Label-weighted label-ranking average precision (lwlrap) of 0/1 labels (rows × labels); higher is better.

    The mean over all true labels of all rows, with equal weights, of the precision at the label's rank: the share of
    true labels among the row's labels that score at least as high.
    """
    score = np.asarray(y_score, dtype=float)
    order = np.argsort(-score, axis=1, kind="stable")
    true = np.take_along_axis(np.asarray(y_true) > 0, order, axis=1)
    score = np.take_along_axis(score, order, axis=1)
    if not true.any():
        raise ValueError("a precision of labels needs a true one")
    ranks = np.arange(score.shape[1])
    last = np.ones(score.shape, dtype=bool)  # labels with the same score share the rank of the last one
    last[:, :-1] = score[:, :-1] != score[:, 1:]
    shared = np.minimum.accumulate(np.where(last, ranks, len(ranks))[:, ::-1], axis=1)[:, ::-1]
    hits = np.take_along_axis(np.cumsum(true, axis=1), shared, axis=1)
    return np.float64(np.mean((hits / (shared + 1))[true]))


def weighted_auroc(
    y_true: np.ndarray, y_score: np.ndarray, *, edges: Sequence[float], weights: Sequence[float]
) -> float:
    """Area under the ROC curve, where bands of the true positive rate weigh differently; higher is better.

    A band extends from one of the `edges` (from 0 to 1, ascending) to the next, and its area is between the curve and
    the right margin. The score is Σ weight · area / Σ weight · height, so that a perfect order has 1. A slanting piece
    of the curve (ties) that crosses an edge counts for both bands.
    """
    false_rate, true_rate = _roc_curve(y_true, y_score)
    for edge in edges[1:-1]:
        end = np.searchsorted(true_rate, edge)  # of the piece that reaches the edge
        part = (edge - true_rate[end - 1]) / (true_rate[end] - true_rate[end - 1])
        crossing = false_rate[end - 1] + part * (false_rate[end] - false_rate[end - 1])
        false_rate, true_rate = np.insert(false_rate, end, crossing), np.insert(true_rate, end, edge)
    heights = np.diff(true_rate)
    areas = heights * (1 - (false_rate[1:] + false_rate[:-1]) / 2)
    bands = np.searchsorted(edges, true_rate[1:]) - 1  # level pieces at 0 are in none, and have no area
    return np.dot(np.asarray(weights)[bands], areas) / np.dot(weights, np.diff(edges))


def _roc_curve(y_true: np.ndarray, y_score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rates, from none to all rows, as the threshold falls past each score that occurs."""
    positive = np.asarray(y_true).astype(bool)
    if positive.all() or not positive.any():
        raise ValueError("a ROC curve needs both classes in the truth")
    scores, group = np.unique(np.asarray(y_score, dtype=float), return_inverse=True)
    counts = (np.bincount(group.ravel()[rows], minlength=len(scores))[::-1] for rows in (~positive, positive))
    false_rate, true_rate = (np.concatenate([[0.0], np.cumsum(count) / count.sum()]) for count in counts)
    return false_rate, true_rate


def average_precision_at_k(actual: Collection[Any], predicted: Sequence[Any], k: int) -> float:
    """Mean precision at the places of the first k predictions that are right; a repeated one counts once."""
    if not actual:
        return 0.0
    hits, total, seen = 0, 0.0, set()
    for rank, item in enumerate(predicted[:k], start=1):
        if item in actual and item not in seen:
            hits += 1
            total += hits / rank
            seen.add(item)
    return total / min(len(actual), k)


def mean_average_precision_at_k(actual: Iterable[Collection[Any]], predicted: Iterable[Sequence[Any]], k: int) -> float:
    """The mean of `average_precision_at_k` over all lists; higher is better."""
    return np.float64(np.mean([average_precision_at_k(*pair, k) for pair in zip(actual, predicted, strict=False)]))


def mean_reciprocal_rank_at_k(actual: Iterable[Any], predicted: Iterable[Sequence[Any]], k: int) -> float:
    """The mean of `average_precision_at_k` where one item is right in each list, but faster; higher is better."""
    ranks = []
    for item, items in zip(actual, predicted, strict=False):
        first = items[:k]
        ranks.append(1 / (first.index(item) + 1) if item in first else 0.0)
    return np.float64(np.mean(ranks))


def pooled_kendall_tau(y_true: Iterable[Sequence[Any]], y_pred: Iterable[Sequence[Any]]) -> float:
    """Kendall's tau of all lists together, from -1 to 1; higher is better. Each predicted list is an order of the true.

    It is 1 - 4 · (pairs of one list in the wrong order) / Σ n(n - 1) over lists of n items: long lists weigh most.
    """
    pairs = 0  # counted twice
    ranks = array("q")  # of what is predicted, over all lists: pairs from different lists are never wrong
    for true, predicted in zip(y_true, y_pred, strict=True):
        pairs += len(true) * (len(true) - 1)
        rank_of = {item: rank for rank, item in enumerate(true, start=len(ranks))}
        ranks.extend(map(rank_of.__getitem__, predicted))
    return 1 - 4 * _inversions(np.array(ranks, dtype=np.int64)) / pairs


def _inversions(ranks: np.ndarray) -> int:
    """How many pairs of a permutation of 0 … n - 1 are in the wrong order.

    Ranks are sorted bit by bit, from the highest. Ranks that agree in all higher bits are then adjacent, starting at
    the place that these bits spell, and keep their order; a pair is wrong if its bits are 1 and 0.
    """
    wrong = 0
    for bit in reversed(range(len(ranks).bit_length())):
        ones = ranks >> bit & 1
        start = ranks >> bit + 1 << bit + 1
        ones_before = np.cumsum(ones) - ones
        ones_before -= ones_before[start]
        wrong += int(ones_before[ones == 0].sum())
        zeros_before = np.arange(len(ranks)) - start - ones_before
        ordered = np.empty_like(ranks)
        ordered[start + np.where(ones, (1 << bit) + ones_before, zeros_before)] = ranks
        ranks = ordered
    return wrong
