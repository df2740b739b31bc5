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


def mean_angular_error(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """The mean angle between directions, in radians; each is a row (azimuth, zenith) of any radians."""
    cosines = (_unit_vectors(y_true) * _unit_vectors(y_pred)).sum(axis=0)
    return np.mean(np.arccos(np.clip(cosines, -1, 1)))


def _unit_vectors(directions: np.ndarray) -> np.ndarray:
    azimuth, zenith = np.asarray(directions, dtype=float).T
    return np.array([np.sin(zenith) * np.cos(azimuth), np.sin(zenith) * np.sin(azimuth), np.cos(zenith)])
