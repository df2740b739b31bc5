"""What a cheater gets, beside submissions that know nothing and the gold submission."""

import importlib
import io
import pkgutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from mlebench.grade import grade_csv
from mlebench.kit import public_sample_bytes
from mlebench.registry import Competition
from support import cheaters
from support.cheaters import CHEATERS, Cheater

SHUFFLES = 20
NEAR = 0.1  # of the way from chance to gold; a blind guess beats twenty shuffles once in twenty-one times


def all_cheaters() -> list[Cheater]:
    for module in pkgutil.iter_modules(cheaters.__path__):
        importlib.import_module(f"{cheaters.__name__}.{module.name}")
    return CHEATERS


class Comparison(NamedTuple):
    """Scores on a scale from the worst of them, 0, to gold, 1."""

    cheated: float
    lucky: float  # the best of the shuffled gold submissions, which know nothing
    chance: float  # their mean
    is_refused: bool  # then the cheater has 0

    @property
    def gain(self) -> float:
        """How much of the way from chance to gold cheating is worth."""
        return (self.cheated - self.chance) / (1 - self.chance)

    @property
    def is_luck(self) -> bool:
        return self.cheated <= self.lucky or self.gain <= NEAR

    @property
    def text(self) -> str:
        """The gain, for tables."""
        if self.is_refused:
            return "refused"
        return "none" if self.is_luck else f"{100 * self.gain:.0f} %"


def compare(cheater: Cheater, competition: Competition, folder: Path) -> Comparison:
    """Grade the cheater's submission, gold, and shuffled gold; masks fit their own images, so a shuffled one that is
    refused has 0.
    """
    submission = cheater.cheat(competition.public_dir)
    if submission is None:  # nothing to use: an agent without an idea hands in the sample
        sample = io.BytesIO(public_sample_bytes(competition))
        submission = pd.read_csv(sample, dtype=str, na_filter=False)  # as text: an id may begin with a zero
    gold = pd.read_csv(competition.gold_submission, dtype=str, na_filter=False)
    targets, rng = competition.submission["targets"], np.random.RandomState(0)
    if competition.submission["values"] == "numbers":
        gold = gold.replace({name: {"": "0"} for name in targets})  # rows without truth do not count
    shuffled = []
    for _ in range(SHUFFLES):
        order = rng.permutation(len(gold))  # each row gets the next one's values, so that few rows never stay in place
        values = np.empty_like(gold[targets].to_numpy())
        values[order] = gold[targets].to_numpy()[np.roll(order, 1)]
        shuffled.append(gold.assign(**dict(zip(targets, values.T, strict=True))))
    scores = np.array([_score(table, competition, folder) for table in (gold, submission, *shuffled)])
    is_refused = not np.isfinite(scores[1])
    scores = -scores if competition.lower_is_better else scores
    scores = np.nan_to_num(scores - np.nanmin(scores[1:]))
    _, cheated, *chance = (scores / scores[0]).tolist()
    return Comparison(cheated, max(chance), float(np.mean(chance)), is_refused)


def _score(submission: pd.DataFrame, competition: Competition, folder: Path) -> float:
    path = folder / "submission.csv"
    submission.to_csv(path, index=False)
    report = grade_csv(path, competition)
    return float("nan") if report.score is None else report.score
