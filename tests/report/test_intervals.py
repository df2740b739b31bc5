"""Means, errors and intervals: against scipy, a published example, properties and simulated agents."""

import os
from random import Random
from statistics import mean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import stats
from support.simulated_agents import METHODS, Case, cases, compared, coverage, ours, power

from mlebench.report.intervals import (
    FEW,
    Estimate,
    MeanDifference,
    Sample,
    interval,
    probability_better,
    seeds_needed,
    student,
)

TIMES = int(os.environ.get("MLEBENCH_SIMULATIONS", "200"))
simulates = pytest.mark.timeout(300 + TIMES)
shapes = st.tuples(st.integers(1, 12), st.integers(1, 5))
outcomes = shapes.flatmap(lambda shape: arrays(float, shape, elements=st.sampled_from([0.0, 1.0])))
shares = shapes.flatmap(lambda shape: arrays(float, shape, elements=st.floats(0, 1)))


def medals(*counts: int, competitions: int = 22) -> NDArray[Any]:
    """A table in which each seed earned this many medals."""
    return np.array([[float(place < count) for count in counts] for place in range(competitions)])


def test_a_published_figure() -> None:
    found = Estimate.of(medals(13, 15, 13)).scaled(100)
    assert (round(found.mean, 2), round(found.sem or 0, 2)) == (62.12, 3.03)


@given(outcomes | shares)
def test_mean_and_error_are_those_of_scipy(values: NDArray[Any]) -> None:
    found = Estimate.of(values)
    assert found.mean == pytest.approx(values.mean())
    if values.shape[1] == 1:
        assert found.sem is None
    else:
        assert found.sem == pytest.approx(stats.sem(values.mean(axis=0)), abs=1e-12)


@given(st.integers(2 * FEW + 2, 200), st.data())
def test_one_seed_has_wilsons_interval_and_the_exact_one_at_few_events(runs: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, runs))
    wilson, exact = (stats.binomtest(hits, runs).proportion_ci(0.95, method) for method in ("wilson", "exact"))
    low, high = interval(Sample.of(medals(hits, competitions=runs)))
    assert low == pytest.approx(min(wilson.low, exact.low) if hits <= FEW else wilson.low, abs=1e-9)
    assert high == pytest.approx(max(wilson.high, exact.high) if runs - hits <= FEW else wilson.high, abs=1e-9)


@pytest.mark.parametrize(("freedom", "near"), [(2, 0.04), (4, 0.005), (10, 1e-4), (44, 1e-6), (150, 1e-8)])
def test_students_quantile_is_that_of_scipy(freedom: int, near: float) -> None:
    for level in (0.6, 0.8, 0.975):
        assert student(float(stats.norm.ppf(level)), freedom) == pytest.approx(stats.t.ppf(level, freedom), rel=near)


@given(outcomes | shares, st.randoms(use_true_random=False))
def test_an_interval_contains_its_mean_and_is_symmetric_in_successes(values: NDArray[Any], random: Random) -> None:
    found, mirrored = Estimate.of(values), Estimate.of(1 - values)
    assert 0 <= found.low <= found.mean + 1e-12
    assert found.mean <= found.high + 1e-12
    assert found.high <= 1
    assert found.low < found.high
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - found.high, 1 - found.low), abs=1e-6)
    shuffled = np.array([random.sample(list(row), len(row)) for row in random.sample(list(values), len(values))])
    again = Estimate.of(shuffled)
    assert (again.low, again.high) == pytest.approx((found.low, found.high), abs=1e-6)


@given(outcomes.filter(lambda values: values.shape[1] > 1))
def test_repeated_results_make_it_narrower(values: NDArray[Any]) -> None:
    once, twice = Sample.of(values), Sample.of(np.hstack([values] * 4))
    assert np.subtract(*interval(once)) <= np.subtract(*interval(twice)) + 1e-9


def test_consistent_competitions_make_it_narrower() -> None:
    sure = medals(11, 11, 11)
    rng = np.random.default_rng(0)
    open_ones = np.array([rng.permutation(column) for column in sure.T]).T
    assert np.ptp(interval(Sample.of(sure))) < np.ptp(interval(Sample.of(open_ones))) / 2


def test_newcombes_published_example() -> None:
    """56 of 70 and 48 of 80, in Newcombe (1998), method 10."""
    found = MeanDifference.of(Sample(56 / 70, None, 70, 1), Sample(48 / 80, None, 80, 1))
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


@given(shapes.flatmap(lambda shape: st.tuples(*[arrays(float, shape, elements=st.sampled_from([0.0, 1.0]))] * 2)))
def test_differences_are_the_same_from_both_sides(tables: tuple[NDArray[Any], NDArray[Any]]) -> None:
    one, other = map(Sample.of, tables)
    found, back = MeanDifference.of(one, other), MeanDifference.of(other, one)
    assert (back.mean, back.low, back.high) == pytest.approx((-found.mean, -found.high, -found.low))
    assert back.probability == pytest.approx(1 - found.probability)
    assert (found.probability > 0.5) == (found.mean > 0)
    if abs(found.low) > 1e-6:  # interval and probability tell the same story
        assert (found.probability > 0.975) == (found.low > 0)


def test_equal_agents_have_even_odds() -> None:
    assert probability_better(Sample.of(medals(5, 6)), Sample.of(medals(6, 5))) == 0.5


def test_smaller_differences_take_more_seeds() -> None:
    one, other = Sample.of(medals(13, 15, 13)), Sample.of(medals(10, 9, 12))
    needed = [seeds_needed(one, other, difference) for difference in (0.3, 0.1, 0.03)]
    assert needed == sorted(needed, key=lambda seeds: seeds or 0)
    assert needed[0] != needed[-1]
    assert seeds_needed(one, other, 1e-6) is None


def lowest(times: int) -> float:
    """What a coverage of 95 % may come out as: chance, and counts that move in steps."""
    return 0.95 - 0.01 - 3 * (0.95 * 0.05 / times) ** 0.5


@simulates
@pytest.mark.parametrize("figure", ["rate", "share"])
def test_intervals_contain_the_truth_as_often_as_promised(figure: str) -> None:
    found = {case: coverage(case, TIMES, METHODS, figure) for case in cases()}
    held = {name: [row[name][0] for row in found.values()] for name in METHODS}
    assert mean(held["ours"]) >= 0.95
    assert min(held["ours"]) >= lowest(TIMES), min(found, key=lambda case: found[case]["ours"][0])
    # What docs/understanding/statistics.md says about the others
    assert mean(held["± SEM"]) < 0.6
    assert min(held["t over seeds"]) < 0.7


@simulates
@pytest.mark.parametrize(("competitions", "seeds"), [(1, 3), (2, 3), (5, 3), (75, 3), (22, 1), (22, 2)])
def test_intervals_of_categories_and_other_splits_hold_as_well(competitions: int, seeds: int) -> None:
    held = [coverage(case, TIMES, {"": ours})[""][0] for case in cases(competitions, seeds)]
    assert mean(held) >= 0.95
    assert min(held) >= lowest(TIMES)


@simulates
@pytest.mark.parametrize("figure", ["rate", "share"])
@pytest.mark.parametrize("kind", [0.3, 3.0])
@pytest.mark.parametrize(("one", "other"), [(0.03, 0.1), (0.5, 0.62), (0.95, 0.95)])
def test_intervals_of_differences_hold(figure: str, kind: float, one: float, other: float) -> None:
    found = compared(Case(one, kind), Case(other, kind), TIMES, figure)
    assert found.held >= lowest(TIMES)
    assert found.right >= 0.85 * found.called


@simulates
def test_the_number_of_seeds_is_enough() -> None:
    seeds, shown = power(Case(0.5, 1.0), 0.1, TIMES)
    assert 3 < seeds < 30
    assert shown > 0.7
