"""Metrics of predicted classes and class probabilities."""

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
