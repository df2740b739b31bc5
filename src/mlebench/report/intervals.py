"""How certain a mean over seeds and competitions is.

docs/understanding/statistics.md explains this and shows how well it holds.

All figures here are between 0 and 1: whether a run earned a medal, or a share. The question is always: if the same
agent were run on the same competitions with new seeds, where would its mean be in the long run? Seeds of different
competitions are independent, so the scatter is taken from the seeds within each competition.
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import Any

from numpy.typing import NDArray

LEVEL = 0.95
POWER = 0.8
Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
FEW = 3
_MOST_SEEDS = 10_000


def _extra(z: float, seeds: int) -> float:
    """Scatter added to the observed one, so that observing none does not mean that there is none."""
    return z * z / (2 * seeds)


def student(z: float, freedom: int) -> float:
    """The quantile of Student's distribution where the normal one is at z, by Cornish and Fisher's expansion."""
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))


@dataclass(frozen=True)
class Sample:
    """Summary of a table of values, with one row per competition and one column per seed."""

    mean: float
    scatter: float | None  # the variances between seeds, summed over competitions; None with one seed
    competitions: int
    seeds: int

    @classmethod
    def of(cls, values: NDArray[Any]) -> "Sample":
        competitions, seeds = values.shape
        scatter = float(values.var(axis=1, ddof=1).sum()) if seeds > 1 else None
        return cls(float(values.mean()), scatter, competitions, seeds)

    def cautious_scatter(self, z: float) -> float:
        """Never zero: a competition that went one way with all seeds may still go the other way."""
        most = self.competitions * self.mean * (1 - self.mean)  # as if all competitions were equally hard
        if self.scatter is None:
            return most
        extra = _extra(z, self.seeds)
        return most * min(1.0, (self.scatter + extra) / (most + extra)) if most else 0.0


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error over seeds (None with one seed), and the limits of its interval."""

    mean: float
    sem: float | None
    low: float
    high: float
    seeds: int
    competitions: int

    @classmethod
    def of(cls, values: NDArray[Any]) -> "Estimate":
        """From a table with one row per competition and one column per seed."""
        sample = Sample.of(values)
        low, high = interval(sample)
        return cls(sample.mean, sem(values), low, high, sample.seeds, sample.competitions)

    def scaled(self, factor: float) -> "Estimate":
        error = None if self.sem is None else factor * self.sem
        return replace(self, mean=factor * self.mean, sem=error, low=factor * self.low, high=factor * self.high)


def sem(values: NDArray[Any]) -> float | None:
    """The standard error of the mean, from the means of seeds and with n - 1: what leaderboards print."""
    seeds = values.shape[1]
    return float(values.mean(axis=0).std(ddof=1) / math.sqrt(seeds)) if seeds > 1 else None


def interval(sample: Sample) -> tuple[float, float]:
    """The limits, for LEVEL. A score interval is too short for a few events, so the exact limit is used there."""
    low, high = _limits(sample, Z)
    runs = sample.competitions * sample.seeds
    events, failures = (math.floor(share * runs + 1e-9) for share in (sample.mean, 1 - sample.mean))
    return min(low, _exact_low(events, runs)), max(high, 1 - _exact_low(failures, runs))


@cache
def _exact_low(count: int, runs: int) -> float:
    """Clopper and Pearson's lower limit of a rate, at no more than FEW events; else 1."""
    if count > FEW:
        return 1.0
    low, high = 0.0, count / runs
    for _ in range(50):
        rate = (low + high) / 2
        fewer = sum(math.comb(runs, k) * rate**k * (1 - rate) ** (runs - k) for k in range(count))
        low, high = (rate, high) if 1 - fewer < (1 - LEVEL) / 2 else (low, rate)
    return low


def _limits(sample: Sample, z: float) -> tuple[float, float]:
    """Wilson's score interval for as many independent runs as would scatter this little.

    If the scatter is an estimate, the quantile is Student's. With less than one event, or less than one failure,
    there is nothing to estimate.
    """
    runs = sample.competitions * sample.seeds
    events = min(sample.mean, 1 - sample.mean) * runs
    if sample.scatter is not None and events > 1 - 1e-9:
        z = student(z, sample.competitions * (sample.seeds - 1))
    mean, most = sample.mean, sample.competitions * sample.mean * (1 - sample.mean)
    ratio = sample.cautious_scatter(z) / most if most else 1.0
    weight = z * z * ratio / runs
    centre = (mean + weight / 2) / (1 + weight)
    half = math.sqrt(weight * mean * (1 - mean) + weight * weight / 4) / (1 + weight)
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True)
class MeanDifference:
    """How much larger the mean of one agent is than that of another, over the same competitions."""

    mean: float
    low: float
    high: float
    probability: float  # that the first is better: the confidence at which an interval excludes 0

    @classmethod
    def of(cls, one: Sample, other: Sample) -> "MeanDifference":
        low, high = _difference_limits(one, other, Z)
        return cls(one.mean - other.mean, low, high, probability_better(one, other))

    def scaled(self, factor: float) -> "MeanDifference":
        return replace(self, mean=factor * self.mean, low=factor * self.low, high=factor * self.high)


def _difference_limits(sample: Sample, other: Sample, z: float) -> tuple[float, float]:
    """Newcombe's method: the distances of both intervals' limits from their means, added as squares."""
    (low, high), (other_low, other_high) = _limits(sample, z), _limits(other, z)
    mean = sample.mean - other.mean
    return (
        mean - math.hypot(sample.mean - low, other_high - other.mean),
        mean + math.hypot(high - sample.mean, other.mean - other_low),
    )


def probability_better(one: Sample, other: Sample) -> float:
    """The confidence at which the interval of the difference just touches 0."""
    if one.mean == other.mean:
        return 0.5
    if one.mean < other.mean:
        return 1 - probability_better(other, one)
    low, high = 0.0, 8.0
    for _ in range(40):
        middle = (low + high) / 2
        touches = _difference_limits(one, other, middle)[0] <= 0
        low, high = (low, middle) if touches else (middle, high)
    return NormalDist().cdf(low)


def seeds_needed(one: Sample, other: Sample, difference: float) -> int | None:
    """How many seeds each agent needs for a true difference of this size to show four times out of five.

    It shows if the interval of the difference excludes 0. None means more seeds than anyone would run.
    """
    scatter = one.cautious_scatter(Z) + other.cautious_scatter(Z)
    power = NormalDist().inv_cdf(POWER)
    for seeds in range(2, _MOST_SEEDS):
        z = student(Z, one.competitions * (seeds - 1))
        extra = 2 * _extra(z, seeds)  # of both agents, as in their intervals
        reach = z * math.sqrt((scatter + extra) / seeds) + power * math.sqrt(scatter / seeds)
        if reach / one.competitions <= difference:
            return seeds
    return None
