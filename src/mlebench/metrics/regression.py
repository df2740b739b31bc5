"""Metrics of predicted numbers: errors, of which lower is better, and correlations, of which higher is."""

import numpy as np


def mean_absolute_error(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """The mean distance between truth and prediction."""
    return np.float64(np.mean(np.abs(np.asarray(y_pred, dtype=float) - np.asarray(y_true, dtype=float))))


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


def pearson(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """Pearson's correlation: the cosine between deviations from the mean.

    NaN where one side is constant or holds a value that is not finite.
    """
    with np.errstate(all="ignore"):
        return np.clip(np.dot(_unit_deviations(y_true), _unit_deviations(y_pred)), -1, 1)


def mean_column_spearman(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """The mean over columns of Spearman's correlation, which is Pearson's of ranks; ties share their mean rank.

    NaN where one column of either side is constant or has a gap. Anything that can be sorted has ranks, text too.
    """
    columns = zip(np.asarray(y_true).T, np.asarray(y_pred).T, strict=True)
    return np.float64(np.mean([pearson(_ranks(true), _ranks(predicted)) for true, predicted in columns]))


def _unit_deviations(values: np.ndarray) -> np.ndarray:
    """Deviations from the mean, as a vector of length one."""
    values = np.asarray(values, dtype=float)
    if (values == values[0]).all():  # said here because the mean of equal values need not be equal to them
        return np.full(len(values), np.nan)
    deviations = values - values.mean()
    largest = np.abs(deviations).max()  # whose square may be too large or too small for a float
    return deviations / (largest * np.linalg.norm(deviations / largest))


def _ranks(values: np.ndarray) -> np.ndarray:
    if (values != values).any():  # gaps have no rank, and with them nothing has
        return np.full(len(values), np.nan)
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(sizes) - (sizes - 1) / 2)[group]
