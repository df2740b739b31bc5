"""Errors of groups, likelihoods and distances on the globe, against scikit-learn and scipy."""

import math
from random import Random

import numpy as np
import pytest
import sklearn.metrics
import sklearn.metrics.pairwise
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import laplace

from mlebench.metrics import (
    haversine_distances,
    laplace_log_likelihood,
    mean_absolute_error,
    mean_log_error_of_groups,
    mean_percentile_distance,
)

pytestmark = pytest.mark.bytes

FLOATS = st.floats(-1e4, 1e4)
ROWS = st.lists(st.tuples(FLOATS, FLOATS, st.sampled_from(["1JHC", "2JHH", "3JHN"])), min_size=1, max_size=30)


@given(ROWS)
def test_mean_log_error_is_the_mean_over_groups_of_scikit_learns_error(rows: list[tuple[float, float, str]]) -> None:
    truth, guess = np.array([row[:2] for row in rows]).T
    groups = np.array([row[2] for row in rows], dtype=object)
    of_groups = [groups == name for name in set(groups)]
    errors = [sklearn.metrics.mean_absolute_error(truth[rows], guess[rows]) for rows in of_groups]
    assume(min(errors) > 1e-12)
    ours = mean_log_error_of_groups(truth, guess, groups)
    assert type(ours) is np.float64
    assert ours == pytest.approx(np.mean(np.log(errors)), rel=1e-9, abs=1e-9)


@given(ROWS, st.floats(0.5, 2))
def test_every_group_weighs_the_same(rows: list[tuple[float, float, str]], factor: float) -> None:
    truth, guess = np.array([row[:2] for row in rows]).T
    groups = np.array([row[2] for row in rows], dtype=object)
    before = mean_log_error_of_groups(truth, guess, groups)
    assume(before > -20)
    assume(np.abs(guess - truth)[groups == groups[0]].mean() > 1e-5)  # or rounding decides what is left of it
    scaled = np.where(groups == groups[0], truth + factor * (guess - truth), guess)
    after = mean_log_error_of_groups(truth, scaled, groups)
    assert after - before == pytest.approx(math.log(factor) / len(set(groups)), abs=1e-6)


def test_a_group_without_error_makes_the_mean_minus_infinity() -> None:
    truth, guess = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.5, 3.5])
    assert mean_log_error_of_groups(truth, guess, np.array(["a", "b", "b"])) == -math.inf
    assert math.isfinite(mean_log_error_of_groups(truth, guess, np.array(["a", "b", "b"]), floor=1e-9))
    assert mean_log_error_of_groups(truth, truth, np.array(["a", "b", "b"]), floor=1e-9) == np.log(1e-9)
    assert math.isfinite(mean_log_error_of_groups(truth, truth + 1.7e308, np.array(["a", "a", "a"]), floor=1e-9))
    assert mean_log_error_of_groups(truth, guess, np.array(["a", "a", "a"])) == np.log(
        mean_absolute_error(truth, guess)
    )


@given(st.lists(st.tuples(st.floats(500, 6000), st.floats(500, 6000), st.floats(0, 2000)), min_size=1, max_size=20))
def test_laplace_log_likelihood_is_scipys(rows: list[tuple[float, float, float]]) -> None:
    truth, guess, confidence = np.array(rows).T
    deviation, error = np.maximum(confidence, 70), np.minimum(np.abs(truth - guess), 1000)
    ours = laplace_log_likelihood(truth, guess, confidence)
    assert type(ours) is np.float64
    assert ours == pytest.approx(laplace.logpdf(error, scale=deviation / math.sqrt(2)).mean(), rel=1e-12)


def test_laplace_log_likelihood_of_worked_examples() -> None:
    def score(guess: float, confidence: float) -> float:
        return laplace_log_likelihood(np.array([2000]), np.array([guess]), np.array([confidence]))

    assert score(2000, 70) == score(2000, 0) == pytest.approx(-math.log(70 * math.sqrt(2)))
    assert score(1000, 100) == score(-math.inf, 100) == pytest.approx(-10 * math.sqrt(2) - math.log(100 * math.sqrt(2)))
    assert math.isnan(score(math.nan, 100))
    assert math.isnan(laplace_log_likelihood(np.array([]), np.array([]), np.array([])))


POINTS = st.tuples(st.floats(-89, 89), st.floats(-180, 180))
RADIUS = 6_371_000


@given(st.lists(st.tuples(POINTS, POINTS), min_size=1, max_size=10))
def test_distances_are_scikit_learns(pairs: list[tuple[tuple[float, float], tuple[float, float]]]) -> None:
    one, other = (np.array([pair[side] for pair in pairs]) for side in (0, 1))
    theirs = sklearn.metrics.pairwise.haversine_distances(np.radians(one), np.radians(other)).diagonal() * RADIUS
    np.testing.assert_allclose(haversine_distances(one, other), theirs, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(haversine_distances(other, one), theirs, rtol=1e-9, atol=1e-6)


def test_distances_of_worked_examples() -> None:
    pole, equator = np.array([[90.0, 0.0]]), np.array([[0.0, 77.0]])
    assert haversine_distances(pole, equator)[0] == pytest.approx(RADIUS * math.pi / 2)
    assert haversine_distances(equator, equator)[0] == 0
    assert haversine_distances(np.array([[0.0, 0.0]]), np.array([[0.0, 1e-5]]))[0] == pytest.approx(1.11195, abs=1e-5)
    for odd in (math.nan, math.inf):
        assert math.isnan(haversine_distances(equator, np.array([[0.0, odd]]))[0])


@given(st.lists(st.tuples(POINTS, POINTS, st.integers(0, 3)), min_size=1, max_size=30), st.randoms())
def test_groups_of_points_weigh_the_same_in_any_order_of_rows(
    rows: list[tuple[tuple[float, float], tuple[float, float], int]], random: Random
) -> None:
    def parts(rows: list) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        one, other, groups = (np.array([row[side] for row in rows]) for side in range(3))
        return one, other, groups

    one, other, groups = parts(rows)
    distances = haversine_distances(one, other)
    expected = [np.percentile(distances[groups == group], [50, 95]).mean() for group in np.unique(groups)]
    ours = mean_percentile_distance(one, other, groups)
    assert type(ours) is np.float64
    assert ours == pytest.approx(np.mean(expected), rel=1e-12)
    random.shuffle(rows)
    assert mean_percentile_distance(*parts(rows)) == pytest.approx(ours, rel=1e-12)


def test_one_point_without_coordinates_leaves_no_score() -> None:
    truth = np.zeros((4, 2))
    guess = np.array([[0, 0], [0, 0], [0, 0], [0, math.nan]])
    assert math.isnan(mean_percentile_distance(truth, guess, np.array([1, 1, 2, 2])))
