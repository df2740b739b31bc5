"""How often intervals contain the truth: simulated agents whose long-run rates are known.

`python tests/support/simulated_agents.py 6000` prints the tables of docs/understanding/statistics.md.
"""

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlebench.report.intervals import Estimate, MeanDifference, Sample, seeds_needed, sem

RATES = (0.01, 0.03, 0.1, 0.3, 0.5, 0.62, 0.8, 0.95, 0.99)
# How unequal competitions are: rates are drawn from Beta(rate k, (1 - rate) k). With a small k nearly every competition
# is always won or always lost, with 3 most are open, and without a limit all are equally hard.
KINDS = (0.1, 0.3, 1.0, 3.0, math.inf)
HARDNESSES = 20  # sets of competitions for each rate and kind
Values = NDArray[Any]


class Case(NamedTuple):
    rate: float
    kind: float
    competitions: int = 22
    seeds: int = 3


def difficulties(rng: np.random.Generator, case: Case) -> Values:
    if case.kind == math.inf:
        return np.full(case.competitions, case.rate)
    return rng.beta(case.rate * case.kind, (1 - case.rate) * case.kind, case.competitions)


def runs(rng: np.random.Generator, rates: Values, seeds: int) -> Values:
    return (rng.random((len(rates), seeds)) < rates[:, None]).astype(float)


def shares(rng: np.random.Generator, rates: Values, seeds: int) -> tuple[Values, float]:
    """Values between 0 and 1, of runs that sometimes fail; and the long-run mean."""
    strength = rng.random(len(rates))[:, None]
    success = runs(rng, rates, seeds)
    values = strength + 0.2 * strength * (1 - strength) * rng.uniform(-1, 1, success.shape)
    return success * values, float((rates[:, None] * strength).mean())


def ours(values: Values) -> tuple[float, float]:
    found = Estimate.of(values)
    return found.low, found.high


def by_sem(factor: float) -> Callable[[Values], tuple[float, float]]:
    def interval(values: Values) -> tuple[float, float]:
        mean, error = float(values.mean()), factor * (sem(values) or 0.0)
        return mean - error, mean + error

    return interval


# The third is Student's t with 2 degrees of freedom, for 3 seeds.
METHODS = {"± SEM": by_sem(1.0), "± 1.96 SEM": by_sem(1.96), "t over seeds": by_sem(4.302653), "ours": ours}


def cases(competitions: int = 22, seeds: int = 3) -> Iterator[Case]:
    for kind in KINDS:
        for rate in RATES:
            yield Case(rate, kind, competitions, seeds)


def tables_of(rng: np.random.Generator, case: Case, times: int, figure: str) -> Iterator[tuple[Values, float]]:
    """Tables of results, each with the true mean."""
    rates = difficulties(rng, case)
    for number in range(times):
        if number and number % max(1, times // HARDNESSES) == 0:
            rates = difficulties(rng, case)
        if figure == "share":
            yield shares(rng, rates, case.seeds)
        else:
            yield runs(rng, rates, case.seeds), float(rates.mean())


def holds(interval: tuple[float, float], truth: float) -> bool:
    return interval[0] - 1e-9 <= truth <= interval[1] + 1e-9


def coverage(
    case: Case, times: int, methods: dict[str, Callable[[Values], tuple[float, float]]], figure: str = "rate"
) -> dict[str, tuple[float, float]]:
    """For each method the share of intervals that contain the truth, and how wide they are."""
    rng = np.random.default_rng([int(1000 * case.rate), int(10 * min(case.kind, 99)), case.competitions, case.seeds])
    held, width = dict.fromkeys(methods, 0), dict.fromkeys(methods, 0.0)
    for values, truth in tables_of(rng, case, times, figure):
        for name, method in methods.items():
            found = method(values)
            held[name] += holds(found, truth)
            width[name] += found[1] - found[0]
    return {name: (held[name] / times, width[name] / times) for name in methods}


class Compared(NamedTuple):
    """How an interval of differences did, and how often the agent called better with some confidence was better."""

    held: float
    called: int
    right: int


def compared(one: Case, other: Case, times: int, figure: str = "rate") -> Compared:
    """Two agents over the same number of competitions."""
    rng = np.random.default_rng([int(1000 * one.rate), int(1000 * other.rate), int(10 * min(one.kind, 99))])
    held = called = right = 0
    pairs = zip(tables_of(rng, one, times, figure), tables_of(rng, other, times, figure), strict=True)
    for (first, first_truth), (second, second_truth) in pairs:
        truth = first_truth - second_truth
        found = MeanDifference.of(Sample.of(first), Sample.of(second))
        held += holds((found.low, found.high), truth)
        if truth and max(found.probability, 1 - found.probability) > 0.9:
            called += 1
            right += (found.probability > 0.5) == (truth > 0)
    return Compared(held / times, called, right)


def power(case: Case, difference: float, times: int) -> tuple[float, float]:
    """The median number of seeds that a first estimate asks for, and how often the difference then shows."""
    rng = np.random.default_rng(7)
    base = difficulties(rng, case)
    better = base + difference * (1 - base) / (1 - base.mean())
    looks = [[Sample.of(runs(rng, rates, case.seeds)) for rates in (better, base)] for _ in range(50)]
    asked = [seeds_needed(one, other, difference) or 0 for one, other in looks]
    seeds = int(np.median(asked))
    shown = 0
    for _ in range(times):
        shown += MeanDifference.of(Sample.of(runs(rng, better, seeds)), Sample.of(runs(rng, base, seeds))).low > 0
    return seeds, shown / times


def main(times: int) -> None:
    for figure in ("rate", "share"):
        print(f"\n{figure}: 3 seeds × 22 competitions; coverage in %, mean width in points")
        found = {case: coverage(case, times, METHODS, figure) for case in cases()}
        for kind in KINDS:
            for rate in RATES:
                row = found[Case(rate, kind)].values()
                print(f"| {kind:g} | {100 * rate:g} | " + " | ".join(f"{100 * c:.1f} ({100 * w:.1f})" for c, w in row))
        for name in METHODS:
            all = [100 * row[name][0] for row in found.values()]
            print(f"{name}: mean {np.mean(all):.1f}, least {min(all):.1f}")
    print("\nours, other shapes: mean and least coverage")
    for competitions, seeds in ((1, 3), (2, 3), (5, 3), (15, 3), (38, 3), (75, 3), (22, 1), (22, 2), (22, 5), (75, 10)):
        all = [100 * coverage(case, times // 4, {"": ours})[""][0] for case in cases(competitions, seeds)]
        print(f"| {competitions} | {seeds} | {np.mean(all):.1f} | {min(all):.1f} |")
    pairs = ((0.01, 0.01), (0.03, 0.1), (0.1, 0.3), (0.3, 0.3), (0.5, 0.62), (0.62, 0.8), (0.95, 0.95), (0.05, 0.5))
    for figure in ("rate", "share"):
        all = [compared(Case(a, kind), Case(b, kind), times // 4, figure) for kind in KINDS for a, b in pairs]
        held = [100 * one.held for one in all]
        right = sum(one.right for one in all) / sum(one.called for one in all)
        print(f"\ndifferences, {figure}: mean {np.mean(held):.1f}, least {min(held):.1f}")
        print(f"called better with a probability over 0.9: {100 * right:.1f} % right")
    print("\nseeds for a difference of 8 points, and how often it shows")
    for competitions in (22, 75):
        for kind in KINDS[1:]:
            seeds, shown = power(Case(0.5, kind, competitions), 0.08, times // 4)
            print(f"| {competitions} | {kind:g} | {seeds} | {100 * shown:.0f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]))
