"""How much a score depends on the choice of test rows: a bootstrap interval.

Groups of rows that belong together (one patient, one sentence) are drawn with replacement, each as a whole. If a
competition has no groups, each id is a group, so rows that share it are drawn together. Each draw gets new ids
and group names, the same on both sides, since graders need them to be unique. If ids or row order mean more to a
grader, renaming alone changes the score: then there is no interval.
"""

import logging
import math
import re
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mlebench.grade.limits import INTERVAL_SECONDS
from mlebench.scoring import Grader, Medals, Thresholds

logger = logging.getLogger(__name__)

DRAWS = 400
LEVEL = 0.95


class Interval(NamedTuple):
    """Where the score lies in 95 % of draws, and the share of draws that earn its medal or a better one."""

    score_low: float | None = None
    score_high: float | None = None
    medal_holds: float | None = None


class Members:
    """What belongs to each number: the rows of an id, the ids of a group."""

    def __init__(self, numbers: np.ndarray, count: int):
        self._order = np.argsort(numbers, kind="stable")
        self._counts = np.bincount(numbers, minlength=count)
        self._starts = self._counts.cumsum() - self._counts

    def of(self, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The members of what was drawn, one after another, and how many each has."""
        counts = self._counts[drawn]
        within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
        return self._order[np.repeat(self._starts[drawn], counts) + within], counts


class Draws:
    """A submission and the answers, ready to be drawn from. Facts are the `submission` of a competition's config.

    `group_of` names the group of each id; without it, groups are what the facts declare.
    """

    def __init__(
        self,
        submission: pd.DataFrame,
        answers: pd.DataFrame,
        facts: Mapping[str, Any],
        group_of: Mapping[Any, str] | None = None,
    ):
        self._id: str = facts["id"]
        self._column: str | None = facts.get("groups", {}).get("column")
        ids = answers[self._id].to_numpy()
        numbers, names = pd.factorize(ids, sort=True)  # so ids of a group keep their order under new names
        known = pd.Index(names)
        positions = known.get_indexer(pd.Index(submission[self._id].to_numpy()))
        if min(numbers.min(initial=0), positions.min(initial=0)) < 0:
            raise ValueError("there are ids that the other side does not have")
        self._parts = pd.Index([])  # the values of the column, where a group may hold several
        if group_of is None:
            rows = np.unique(numbers, return_index=True)[1]
            groups = _groups(answers, np.asarray(names), rows, facts.get("groups", {}))
        else:
            groups = pd.factorize(np.array([group_of[id] for id in names.tolist()], dtype=object))[0]
            if self._column is not None and self._column in answers:
                self._parts = pd.Index(answers[self._column].unique())
        self.count = int(groups.max(initial=-1)) + 1
        self._ids = Members(groups, self.count)
        self._sides = [
            (submission, Members(positions, len(known))),
            (answers, Members(numbers, len(known))),
        ]

    def score(self, grader: Grader, drawn: np.ndarray) -> float:
        ids, sizes = self._ids.of(drawn)
        copies = np.repeat(np.arange(len(drawn)), sizes)
        score = grader.score(*(self._drawn(table, *rows.of(ids), copies) for table, rows in self._sides))
        if not math.isfinite(score):
            raise ValueError("a draw has no finite score")
        return score

    def _drawn(self, table: pd.DataFrame, places: np.ndarray, counts: np.ndarray, copies: np.ndarray) -> pd.DataFrame:
        rows = table.iloc[places].reset_index(drop=True)
        rows[self._id] = _renamed(table[self._id], np.repeat(np.arange(len(counts)), counts))
        if self._column is not None and self._column in table:
            numbers = np.repeat(copies, counts)
            if len(self._parts):
                numbers = numbers * len(self._parts) + self._parts.get_indexer(rows[self._column])
            rows[self._column] = _renamed(table[self._column], numbers)
        return rows


def _groups(answers: pd.DataFrame, ids: np.ndarray, rows: np.ndarray, declared: Mapping[str, str]) -> np.ndarray:
    """The number of each id's group, taken from a column of the answers or the first letters of the id."""
    if "column" in declared:
        return pd.factorize(answers[declared["column"]].to_numpy()[rows])[0]
    if "pattern" in declared:
        matches = [re.match(declared["pattern"], str(id)) for id in ids]
        return pd.factorize(np.array([match[0] if match else "" for match in matches], dtype=object))[0]
    return np.arange(len(ids))


def _renamed(column: Any, numbers: np.ndarray) -> np.ndarray:
    """Numbers stay numbers; texts sort as the numbers in them do."""
    if column.dtype.kind in "iuf":
        return numbers
    return np.array([f"{number:09d}" for number in numbers.tolist()], dtype=object)


def drawn_scores(
    grader: Grader,
    submission: pd.DataFrame,
    answers: Any,
    facts: Mapping[str, Any],
    score: float,
    group_of: Mapping[Any, str] | None = None,
) -> list[float] | None:
    """The scores of `DRAWS` draws; None where the grader does not allow that, or takes too long."""
    id = facts.get("id")
    if not isinstance(answers, pd.DataFrame) or id not in answers or id not in submission:
        return None
    rng, deadline, scores = np.random.default_rng(0), time.monotonic() + INTERVAL_SECONDS, []
    try:
        draws = Draws(submission, answers, facts, group_of)
        if not math.isclose(draws.score(grader, rng.permutation(draws.count)), score, rel_tol=1e-9, abs_tol=1.5e-5):
            return None
        while len(scores) < DRAWS:
            if time.monotonic() > deadline:
                return None
            scores.append(draws.score(grader, rng.integers(0, draws.count, draws.count)))
    except Exception as error:  # from a metric that some draws break
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
    earned = (medals.bronze_medal, medals.silver_medal, medals.gold_medal)
    return earned.index(True) + 1 if True in earned else 0
