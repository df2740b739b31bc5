"""How much a score owes to the choice of test rows: an interval, by drawing the rows again.

Rows are drawn with replacement by their id; those that share an id are drawn together. Each draw gets new ids, the
same on both sides, since graders want them to be unique. A grader to which ids or the order of rows mean more than that
gives another score when the ids alone are changed: then there is no interval. Rows that belong together in another way
than by their id count as independent, so an interval may be too narrow.
"""

import logging
import math
import time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mlebench.scoring import Grader, Medals, Thresholds

logger = logging.getLogger(__name__)

DRAWS = 400
SECONDS = 120.0  # more is not spent on it
LEVEL = 0.95


class Interval(NamedTuple):
    """Where the score lies in 95 % of draws, and in which share of them its medal, or a better one, is earned."""

    score_low: float | None = None
    score_high: float | None = None
    medal_holds: float | None = None


class Rows:
    """The rows of a table by the number of their id."""

    def __init__(self, table: pd.DataFrame, id: str, numbers: np.ndarray, count: int):
        self._table, self._id = table, id
        self._order = np.argsort(numbers, kind="stable")
        self._counts = np.bincount(numbers, minlength=count)
        self._starts = self._counts.cumsum() - self._counts

    def drawn(self, drawn: np.ndarray, names: np.ndarray) -> pd.DataFrame:
        """The rows of these ids, under new names."""
        counts = self._counts[drawn]
        within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        places = self._order[np.repeat(self._starts[drawn], counts) + within]
        rows = self._table.iloc[places].reset_index(drop=True)
        rows[self._id] = np.repeat(names, counts)
        return rows


class Draws:
    """A submission and the answers, ready to be drawn from."""

    def __init__(self, submission: pd.DataFrame, answers: pd.DataFrame, id: str):
        numbers, names = pd.factorize(answers[id].to_numpy())
        known = pd.Index(names)
        found = known.get_indexer(pd.Index(submission[id].to_numpy()))
        if min(numbers.min(initial=0), found.min(initial=0)) < 0:
            raise ValueError("there are ids that the other side does not have")
        self.count = len(known)
        self._sides = Rows(submission, id, found, self.count), Rows(answers, id, numbers, self.count)
        texts = np.array([f"{number:09d}" for number in range(self.count)], dtype=object)
        self._names = np.arange(self.count) if known.dtype.kind in "iuf" else texts

    def score(self, grader: Grader, drawn: np.ndarray) -> float:
        score = grader.score(*(side.drawn(drawn, self._names) for side in self._sides))
        if not math.isfinite(score):
            raise ValueError("a draw has no finite score")
        return score


def drawn_scores(grader: Grader, submission: pd.DataFrame, answers: Any, id: str, score: float) -> list[float] | None:
    """The scores of `DRAWS` draws; None where the grader does not allow that, or takes too long."""
    if not isinstance(answers, pd.DataFrame) or id not in answers or id not in submission:
        return None
    rng, deadline, scores = np.random.default_rng(0), time.monotonic() + SECONDS, []
    try:
        draws = Draws(submission, answers, id)
        if not math.isclose(draws.score(grader, rng.permutation(draws.count)), score, rel_tol=1e-9, abs_tol=1.5e-5):
            return None
        while len(scores) < DRAWS:
            if time.monotonic() > deadline:
                return None
            scores.append(draws.score(grader, rng.integers(0, draws.count, draws.count)))
    except Exception as error:  # of a metric that not every draw allows
        logger.info("There is no interval: %s", error)
        return None
    return scores


def interval_of(score: float, scores: list[float], thresholds: Thresholds, *, lower: bool) -> Interval:
    low, high = np.quantile(scores, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    rank = _rank(score, thresholds, lower=lower)
    holds = sum(_rank(drawn, thresholds, lower=lower) >= rank for drawn in scores) / len(scores)
    return Interval(float(low), float(high), holds if rank else None)


def _rank(score: float, thresholds: Thresholds, *, lower: bool) -> int:
    medals = Medals.of(score, thresholds, lower=lower)
    return 3 * medals.gold_medal + 2 * medals.silver_medal + medals.bronze_medal
