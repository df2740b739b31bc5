"""How often the intervals of `inspect familiarity` contain the truth: simulated models that know a share of passages.

`python tests/support/familiarity_simulation.py 4000` prints the tables of docs/understanding/inspecting.md.
"""

import random
import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlebench.integrity.familiarity.completion import similarity
from mlebench.integrity.familiarity.effects import (
    EffectEstimate,
    difference_of_means,
    mean_difference,
    rank_correlation,
)
from support.memorizing_model import sentence

SHARES = (0.0, 0.05, 0.1, 0.25, 0.5, 0.9, 1.0)
SIZES = (4, 8, 16, 24, 48)


class Held(NamedTuple):
    coverage: float
    width: float
    mean: float  # of the estimates
    truth: float


def guesses(number: int = 2000, seed: int = 0) -> NDArray[np.float64]:
    """How close a guess comes to a sentence that the model does not know."""
    rng = random.Random(seed)
    return np.array([similarity(sentence(rng), "", sentence(rng)) for _ in range(number)])


def differences(rng: np.random.Generator, share: float, n: int, pool: NDArray[np.float64]) -> NDArray[np.float64]:
    """Differences for this many passages, a share of which is known by heart; controls can only be guessed."""
    original = np.where(rng.random(n) < share, 1.0, rng.choice(pool, n))
    return original - rng.choice(pool, n)


def coverage(share: float, n: int, times: int, pool: NDArray[np.float64]) -> Held:
    rng = np.random.default_rng([int(1000 * share), n])
    truth = share * (1 - float(pool.mean()))
    found = [mean_difference(list(differences(rng, share, n, pool))) for _ in range(times)]
    return _held(found, truth)


def coverage_unpaired(share: float, n: int, times: int) -> Held:
    """Token probabilities of passages, of which a share is known, against passages of ours."""
    rng = np.random.default_rng([int(1000 * share), n, 1])
    found = []
    for _ in range(times):
        known = rng.random(n) < share
        original = np.where(known, rng.beta(90, 10, n), rng.beta(10, 10, n))
        found.append(difference_of_means(list(original), list(rng.beta(10, 10, n))))
    return _held(found, share * 0.4)


def coverage_of_correlation(rho: float, n: int, times: int) -> Held:
    """Familiarity and performance with a known rank correlation."""
    rng = np.random.default_rng([int(100 * rho), n])
    truth = 6 / np.pi * np.arcsin(rho / 2)
    found = []
    for _ in range(times):
        one, other = rng.normal(size=n), rng.normal(size=n)
        found.append(rank_correlation(list(one), list(rho * one + np.sqrt(1 - rho**2) * other)))
    return _held([one for one in found if one], float(truth))


def _held(found: list[EffectEstimate], truth: float) -> Held:
    limits = [(one.low, one.high) for one in found if one.low is not None and one.high is not None]
    assert len(limits) == len(found)
    return Held(
        sum(low <= truth <= high for low, high in limits) / len(found),
        sum(high - low for low, high in limits) / len(found),
        sum(one.value for one in found) / len(found),
        truth,
    )


def main(times: int) -> None:
    pool = guesses(20_000)
    print(f"a guess comes as near as {pool.mean():.3f} ± {pool.std():.3f}\n")
    print("| share known | truth | " + " | ".join(f"n = {n}" for n in SIZES) + " |")
    for share in SHARES:
        row = [coverage(share, n, times, pool) for n in SIZES]
        cells = " | ".join(f"{100 * one.coverage:.1f} ({one.width:.2f})" for one in row)
        print(f"| {100 * share:g} % | {row[0].truth:.3f} | {cells} |")
    print("\nnot paired")
    for share in SHARES:
        row = [coverage_unpaired(share, n, times) for n in SIZES]
        cells = " | ".join(f"{100 * one.coverage:.1f} ({one.width:.2f})" for one in row)
        print(f"| {100 * share:g} % | {row[0].truth:.3f} | {cells} |")
    print("\n| rank correlation | n = 10 | n = 22 | n = 75 |")
    for rho in (0.0, 0.3, 0.6, 0.9):
        row = [coverage_of_correlation(rho, n, times) for n in (10, 22, 75)]
        cells = " | ".join(f"{100 * one.coverage:.1f} ({one.width:.2f})" for one in row)
        print(f"| {row[0].truth:.2f} | {cells} |")


if __name__ == "__main__":
    main(int(sys.argv[1]))
