"""How large a difference is, and how sure we are of it. docs/inspect.md shows how well the intervals hold."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlebench.report.intervals import LEVEL, Z, student

FEWEST = 3  # values that an interval is made of
FEWEST_COMPETITIONS = 10  # that a rank correlation is made of


@dataclass(frozen=True)
class Estimate:
    """A mean, a difference or a correlation. Without limits there were too few values for an interval."""

    value: float
    low: float | None
    high: float | None
    n: int

    def to_dict(self) -> dict[str, Any]:
        return {name: value if value is None else round(value, 6) for name, value in asdict(self).items()}

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.value:+.3f} (n = {self.n}, too few for an interval)"
        return f"{self.value:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


def mean_difference(values: Sequence[float], *, is_share: bool = True) -> Estimate:
    """The mean of paired differences, each of an original and its control.

    Student's interval, from the scatter of the differences. It is too short where a model knows few of the passages,
    or nearly all, and the odd ones are not among those that were asked about. Therefore a difference of shares also
    allows for passages that nobody has seen: as many as could be missing by chance may be known by heart (a difference
    of 1), or not at all (0).
    """
    mean, n = float(np.mean(values)), len(values)
    if n < FEWEST:
        return Estimate(mean, None, None, n)
    half = student(Z, n - 1) * float(np.std(values, ddof=1)) / math.sqrt(n)
    low, high = mean - half, mean + half
    if is_share:
        unseen = 1 - ((1 - LEVEL) / 2) ** (1 / n)
        low, high = min(low, mean - unseen * max(0.0, mean)), max(high, mean + unseen * (1 - mean))
    return Estimate(mean, low, high, n)


def difference_of_means(one: Sequence[float], other: Sequence[float]) -> Estimate:
    """The first mean minus the second, of values that are not paired: Welch's interval."""
    mean, n = float(np.mean(one) - np.mean(other)), min(len(one), len(other))
    if n < FEWEST:
        return Estimate(mean, None, None, n)
    parts = [float(np.var(values, ddof=1)) / len(values) for values in (one, other)]
    spread = sum(part**2 / (len(values) - 1) for part, values in zip(parts, (one, other), strict=True))
    freedom = max(1, int(sum(parts) ** 2 / spread)) if spread else n - 1
    half = student(Z, freedom) * math.sqrt(sum(parts))
    return Estimate(mean, mean - half, mean + half, n)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> Estimate | None:
    """Spearman's, with Bonett and Wright's interval; None where it is not defined, as one of both never varies."""
    ranks = [_ranks(np.asarray(values, dtype=float)) for values in (one, other)]
    if any(np.ptp(each) == 0 for each in ranks):
        return None
    n, value = len(one), float(np.corrcoef(ranks[0], ranks[1])[0, 1])
    if n < FEWEST_COMPETITIONS:
        return Estimate(value, None, None, n)
    middle = math.atanh(max(-1 + 1e-9, min(1 - 1e-9, value)))
    half = Z * math.sqrt((1 + value**2 / 2) / (n - 3))
    return Estimate(value, math.tanh(middle - half), math.tanh(middle + half), n)


def _ranks(values: NDArray[Any]) -> NDArray[Any]:
    """Equal values share the mean of their ranks."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[place]
