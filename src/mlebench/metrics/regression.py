"""Metrics of predicted numbers; lower is better in all of them."""

import numpy as np


def rmse(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """Root mean squared error."""
    return np.sqrt(np.mean(np.square(np.asarray(y_true, dtype=float) - np.asarray(y_pred, dtype=float))))


def rmsle(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """Root mean squared error of log(1 + x); values must not be negative."""
    if np.min(y_true) < 0 or np.min(y_pred) < 0:
        raise ValueError("RMSLE is not defined for negative values")
    return rmse(np.log1p(np.asarray(y_true, dtype=float)), np.log1p(np.asarray(y_pred, dtype=float)))
