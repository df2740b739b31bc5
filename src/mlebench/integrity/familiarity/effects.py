"""How large a difference is, and how sure we are of it.

docs/understanding/inspecting.md shows how well the intervals hold.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlebench.report.intervals import LEVEL, Z, student

FEWEST = 3  # values for an interval
FEWEST_COMPETITIONS = 10  # for a rank correlation


@dataclass(frozen=True)
class EffectEstimate:
    """A mean, a difference or a correlation. It has no limits if there were too few values for an interval."""

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


def mean_difference(values: Sequence[float], *, is_share: bool = True) -> EffectEstimate:
    """The mean of paired differences, each of an original and its control: Student's interval.

    A share lies between 0 and 1, so we know how much the passages that were not asked about could add.
    """
    mean, n = float(np.mean(values)), len(values)
    if n < FEWEST:
        return EffectEstimate(mean, None, None, n)
    half = student(Z, n - 1) * float(np.std(values, ddof=1)) / math.sqrt(n)
    return _estimate(mean, half, n, is_share)


def difference_of_means(
    originals: Sequence[float], controls: Sequence[float], *, is_share: bool = True
) -> EffectEstimate:
    """The mean of originals minus that of controls that are not paired with them: Welch's interval."""
    mean, n = float(np.mean(originals) - np.mean(controls)), min(len(originals), len(controls))
    if n < FEWEST:
        return EffectEstimate(mean, None, None, n)
    parts = [float(np.var(values, ddof=1)) / len(values) for values in (originals, controls)]
    spread = sum(part**2 / (len(values) - 1) for part, values in zip(parts, (originals, controls), strict=True))
    freedom = max(1, int(sum(parts) ** 2 / spread)) if spread else n - 1
    return _estimate(mean, student(Z, freedom) * math.sqrt(sum(parts)), n, is_share)


def _estimate(mean: float, half: float, n: int, is_share: bool) -> EffectEstimate:
    """Limits that also allow for passages that were not asked about.

    Scatter alone gives too short an interval if a model knows few passages, or nearly all, and the exceptions were not
    among those it was asked about. As many as chance could have missed may be known by heart, a difference of 1, or
    not at all, a difference of 0.
    """
    low, high = mean - half, mean + half
    if is_share:
        unseen = 1 - ((1 - LEVEL) / 2) ** (1 / n)
        low, high = min(low, mean - unseen * max(0.0, mean)), max(high, mean + unseen * (1 - mean))
    return EffectEstimate(mean, low, high, n)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> EffectEstimate | None:
    """Spearman's, with Bonett and Wright's interval; None if it is undefined, because one of the two never varies."""
    ranks = [_ranks(np.asarray(values, dtype=float)) for values in (first, second)]
    if any(np.ptp(ranking) == 0 for ranking in ranks):
        return None
    n, value = len(first), float(np.corrcoef(ranks[0], ranks[1])[0, 1])
    if n < FEWEST_COMPETITIONS:
        return EffectEstimate(value, None, None, n)
    middle = math.atanh(max(-1 + 1e-9, min(1 - 1e-9, value)))
    half = Z * math.sqrt((1 + value**2 / 2) / (n - 3))
    return EffectEstimate(value, math.tanh(middle - half), math.tanh(middle + half), n)


def _ranks(values: NDArray[Any]) -> NDArray[Any]:
    """Equal values share the mean of their ranks."""
    _, index, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2)[index]
