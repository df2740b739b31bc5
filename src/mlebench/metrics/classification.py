"""Metrics of predicted classes and class probabilities."""

from itertools import chain

import numpy as np


def accuracy(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """The share of equal values; higher is better. Values of different kinds (text, number) are never equal."""
    return float(np.mean(np.asarray(y_true == y_pred, dtype=bool)))


def log_loss(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """Mean negative log likelihood of one-hot truth (rows × classes); lower is better.

    Probabilities are kept one float64 epsilon away from 0 and 1 and are not normalised.
    """
    epsilon = np.finfo(np.float64).eps
    log_p = np.log(np.clip(np.asarray(y_pred, dtype=float), epsilon, 1 - epsilon))
    return float(np.mean(-(np.asarray(y_true, dtype=float) * log_p).sum(axis=1)))


def binary_log_loss(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """`log_loss` of two classes, where the truth is 0 or 1 and predictions are probabilities of 1; lower is better."""
    true, predicted = (np.column_stack([1 - side, side]) for side in (y_true, np.asarray(y_pred, dtype=float)))
    return log_loss(true, predicted)


def weighted_multilabel_log_loss(
    y_true: np.ndarray, y_pred: np.ndarray, *, weights: np.ndarray, positive_factor: float = 1
) -> float:
    """Mean over rows of the log loss of 0/1 labels (rows × labels), weighed within each row; lower is better.

    A label weighs its weight, times `positive_factor` where it is 1; weights of a row are brought to sum to one.
    Predictions, which are probabilities of 1, are kept 1e-15 away from 0 and 1.
    """
    positive, predicted = np.asarray(y_true).astype(bool), np.clip(np.asarray(y_pred, dtype=float), 1e-15, 1 - 1e-15)
    losses = -np.log(np.where(positive, predicted, 1 - predicted))
    weighed = np.where(positive, positive_factor, 1) * np.asarray(weights)
    return np.mean((losses * weighed).sum(axis=1) / weighed.sum(axis=1))


def micro_f1_of_tags(y_true: np.ndarray, y_pred: np.ndarray, *, ignore_unknown: bool = False) -> float:
    """F1 of texts that hold tags with blanks between them, counted over all rows together; higher is better.

    It is 2 · hits / (true tags + predicted tags), 0 where there are none; a tag that a row repeats counts once. With
    `ignore_unknown`, tags that no row of the truth has are not counted: predicting them costs nothing.
    """
    known = frozenset(chain.from_iterable(map(str.split, y_true.tolist())))
    hits = tags = 0
    for true_text, predicted_text in zip(y_true.tolist(), y_pred.tolist(), strict=True):
        true, predicted = set(true_text.split()), set(predicted_text.split())
        if ignore_unknown:
            predicted &= known
        hits += len(true & predicted)
        tags += len(true) + len(predicted)
    return np.float64(2 * hits / tags if tags else 0)


def macro_f1(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """The mean over classes of F1, which is 2 · hits / (true rows + predicted rows); higher is better.

    Every class counts alike, however rare, and so does one that only occurs in predictions: its F1 is 0.
    """
    classes, labels = np.unique(np.concatenate([y_true, y_pred]), return_inverse=True)
    true, predicted = np.split(labels.ravel(), 2)
    hits = np.bincount(true[true == predicted], minlength=len(classes))
    return np.float64(np.mean(2 * hits / np.bincount(labels.ravel())))


def probabilistic_f1(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """F1 of probabilities of being positive, counted as shares of a row; higher is better.

    Precision is the sum of predictions for true positives over the sum of all predictions; recall is the same sum over
    the number of true positives. The score is their harmonic mean, 0 if either is 0. Predictions are clipped to 0 … 1.
    """
    positive, predicted = np.asarray(y_true).astype(bool), np.clip(np.asarray(y_pred, dtype=float), 0, 1)
    true_positives = predicted[positive].sum()
    if not true_positives:
        return np.float64(0)
    precision, recall = (
        true_positives / (true_positives + predicted[~positive].sum()),
        true_positives / np.count_nonzero(positive),
    )
    if not precision * recall:  # numbers too small to tell from 0
        return np.float64(0)
    return 2 * (precision * recall) / (precision + recall)


def kl_divergence(
    y_true: np.ndarray, y_pred: np.ndarray, *, ignore_empty: bool = False, not_clipped: np.ndarray | None = None
) -> float:
    """The mean over rows of the Kullback-Leibler divergence of predicted from true probabilities (rows × classes).

    That is Σ true · log(true / predicted) over the classes with some truth; lower is better. Predictions are kept 1e-15
    away from 0 and 1, except in classes marked by the mask `not_clipped`, where a wrong 0 makes the score infinite.
    They are not normalised. With `ignore_empty` a NaN among them counts for nothing; otherwise the score is NaN.
    """
    true, predicted = np.asarray(y_true, dtype=float), np.asarray(y_pred, dtype=float)
    clipped = np.clip(predicted, 1e-15, 1 - 1e-15)
    if not_clipped is not None:
        clipped = np.where(not_clipped, predicted, clipped)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = true * np.log(np.where(true == 0, 1, true / clipped))
    return np.mean((np.nansum if ignore_empty else np.sum)(terms, axis=1))


def quadratic_weighted_kappa(y_true: np.ndarray, y_pred: np.ndarray, *, by_value: bool = False) -> float:
    """Cohen's kappa of two ratings whose disagreement costs the square of its size; higher is better.

    It is 1 - (cost of the pairs) / (expected cost if the same ratings were paired at random). Disagreement is measured
    in positions among the classes that occur, so an unused class is skipped, as in the published scores. NaN
    if only one class occurs. With `by_value` it is measured in the ratings themselves, which are whole numbers, so it
    does not depend on which of them occur; and if only one does, kappa is 0.
    """
    if by_value:
        return _kappa_by_value(np.asarray(y_true, dtype=float), np.asarray(y_pred, dtype=float))
    classes, codes = np.unique(np.concatenate([y_true, y_pred]), return_inverse=True)
    true, predicted = np.split(codes.ravel(), 2)
    counts = [np.bincount(rated, minlength=len(classes)) for rated in (true, predicted)]
    cost = np.square(np.subtract.outer(np.arange(len(classes)), np.arange(len(classes))))
    by_chance = np.sum(cost * (np.outer(*counts) / len(true)))
    return np.float64(1 - np.sum(np.square(true - predicted)) / by_chance) if by_chance else np.float64("nan")


def _kappa_by_value(true: np.ndarray, predicted: np.ndarray) -> float:
    values, counts = np.unique(predicted, return_counts=True)
    by_chance = sum(count * np.mean(np.square(true - value)) for value, count in zip(values, counts, strict=True))
    return np.float64(1 - np.sum(np.square(true - predicted)) / by_chance if by_chance else 0)


def matthews_correlation(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """Matthews' correlation of two labellings, of two classes or more, from -1 to 1; higher is better.

    It is the covariance of the labels as indicators over the root of both variances, and 0 where one side is constant.
    """
    count = len(y_true)
    classes, labels = np.unique(np.concatenate([y_true, y_pred]), return_inverse=True)
    # Counts stay below 2**53 when multiplied, so they are exact as floats.
    true, predicted = (
        np.bincount(side, minlength=len(classes)).astype(float) for side in (labels[:count], labels[count:])
    )
    agreed = float(np.count_nonzero(labels[:count] == labels[count:]))
    variances = (count**2 - true @ true) * (count**2 - predicted @ predicted)
    return np.float64((agreed * count - true @ predicted) / np.sqrt(variances)) if variances else 0.0
