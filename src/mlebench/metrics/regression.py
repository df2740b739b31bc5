"""Metrics of predicted numbers: errors, where lower is better, and correlations, where higher is."""

import numpy as np

from mlebench.metrics.ranking import mean_ranks

EARTH_RADIUS = 6_371_000  # metres


def mean_absolute_error(y_true: np.ndarray, y_pred: np.ndarray, *, scaled: bool = False) -> float:
    """The mean distance between truth and prediction. A sum beyond the largest float makes it infinite, see `rmse`."""
    errors = np.abs(np.asarray(y_pred, dtype=float) - np.asarray(y_true, dtype=float))
    if scaled:
        largest = float(errors.max()) or 1.0
        return largest * float(np.mean(errors / largest))
    return np.float64(np.mean(errors))


def rmse(y_true: np.ndarray, y_pred: np.ndarray, *, scaled: bool = False) -> float:
    """Root mean squared error. Squares beyond the largest float make it infinite, unless errors are `scaled` first."""
    errors = np.asarray(y_true, dtype=float) - np.asarray(y_pred, dtype=float)
    if scaled:
        largest = float(np.abs(errors).max()) or 1.0
        return largest * float(np.sqrt(np.mean(np.square(errors / largest))))
    with np.errstate(over="ignore"):
        return np.sqrt(np.mean(np.square(errors)))


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


def mean_log_error_of_groups(
    y_true: np.ndarray, y_pred: np.ndarray, groups: np.ndarray, *, floor: float | None = None
) -> float:
    """The mean over groups of ln(mean absolute error), minus infinity where a group has no error at all.

    Every group weighs the same, and so does every halving of its error. With a floor, which is the least that a mean
    error counts, the score is finite.
    """
    names = groups.tolist()
    numbers = {name: number for number, name in enumerate(sorted(set(names)))}
    codes = np.array([numbers[name] for name in names], dtype=int)
    errors = np.abs(np.asarray(y_true, dtype=float) - np.asarray(y_pred, dtype=float))
    means = np.bincount(codes, errors) / np.bincount(codes)
    if floor is not None:
        means = np.clip(means, floor, np.finfo(float).max)
    with np.errstate(divide="ignore"):
        logs = np.log(means)
    return np.float64(np.mean(logs))


def laplace_log_likelihood(y_true: np.ndarray, y_pred: np.ndarray, confidence: np.ndarray) -> float:
    """The mean log likelihood of the truth under a Laplace distribution around each prediction; higher is better.

    Its standard deviation is the confidence, but at least 70; errors are capped at 1000. So neither the reward for a
    confident hit nor the cost of a miss is unlimited. NaN if there is nothing to compare.
    """
    deviation = np.maximum(np.asarray(confidence, dtype=float), 70)
    error = np.minimum(np.abs(np.asarray(y_true, dtype=float) - np.asarray(y_pred, dtype=float)), 1000)
    likelihoods = -np.sqrt(2) * error / deviation - np.log(np.sqrt(2) * deviation)
    return np.float64(np.mean(likelihoods)) if likelihoods.size else np.float64("nan")


def haversine_distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Metres along the surface between points of a sphere of 6371 km; each is a row (latitude, longitude) in degrees.

    NaN where a coordinate is NaN, and for latitudes so far beyond the poles that no distance is defined.
    """
    latitude, longitude = np.radians(np.asarray(one, dtype=float)).T
    other_latitude, other_longitude = np.radians(np.asarray(other, dtype=float)).T
    with np.errstate(invalid="ignore"):
        across = np.cos(latitude) * np.cos(other_latitude) * np.sin((other_longitude - longitude) / 2) ** 2
        return 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.sin((other_latitude - latitude) / 2) ** 2 + across))


def mean_percentile_distance(y_true: np.ndarray, y_pred: np.ndarray, groups: np.ndarray) -> float:
    """The mean over groups of points of the mean of the 50th and the 95th percentile of `haversine_distances`."""
    _, codes = np.unique(groups, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    distances = haversine_distances(y_true, y_pred)[order]
    of_groups = np.split(distances, np.flatnonzero(np.diff(codes[order])) + 1)
    return np.float64(np.mean([np.quantile(group, (0.5, 0.95)).mean() for group in of_groups]))


def pearson(y_true: np.ndarray, y_pred: np.ndarray, *, undefined_value: float = float("nan")) -> float:
    """Pearson's correlation: the cosine between deviations from the mean.

    It is not defined where one side is constant, holds a value that is not finite, or has an infinite sum.
    """
    with np.errstate(all="ignore"):
        cosine = np.clip(np.dot(_unit_deviations(y_true), _unit_deviations(y_pred)), -1, 1)
    return np.float64(undefined_value) if np.isnan(cosine) else cosine


def mean_column_spearman(y_true: np.ndarray, y_pred: np.ndarray, *, undefined_value: float = float("nan")) -> float:
    """The mean over columns of Spearman's correlation, which is Pearson's of ranks; ties share their mean rank.

    It is not defined where a column of either side is constant or has a gap. Anything that can be sorted has ranks,
    text too.
    """
    columns = zip(np.asarray(y_true).T, np.asarray(y_pred).T, strict=True)
    correlations = np.array([pearson(_ranks(true), _ranks(predicted)) for true, predicted in columns])
    return np.float64(np.mean(np.where(np.isnan(correlations), undefined_value, correlations)))


def _unit_deviations(values: np.ndarray) -> np.ndarray:
    """Deviations from the mean, as a vector of length one."""
    values = np.asarray(values, dtype=float)
    if (values == values[0]).all():  # checked here because the mean of equal values need not equal them
        return np.full(len(values), np.nan)
    deviations = values - values.mean()
    largest = np.abs(deviations).max()  # whose square may be too large or too small for a float
    return deviations / (largest * np.linalg.norm(deviations / largest))


def _ranks(values: np.ndarray) -> np.ndarray:
    if (values != values).any():  # gaps have no rank, so no value has one
        return np.full(len(values), np.nan)
    return mean_ranks(values)
