"""Every defect that profile v2 corrects helped an agent under v1 and helps no more: one program for each, and proof."""

import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import cheaters
from support.cheaters import CHEATERS, Cheater

from mlebench.grade import grade_csv
from mlebench.kit import public_sample
from mlebench.registry import Competition

for module in pkgutil.iter_modules(cheaters.__path__):
    importlib.import_module(f"{cheaters.__name__}.{module.name}")

SHUFFLES = 20
FAR = 0.2  # of the way from chance to gold
NEAR = 0.1  # still luck: a blind guess beats twenty shuffles once in twenty-one times


@pytest.mark.parametrize(
    "cheater",
    [pytest.param(each, id=each.name, marks=pytest.mark.xdist_group(each.competition)) for each in CHEATERS],
)
def test_a_cheater_wins_under_v1_and_not_under_v2(
    cheater: Cheater, default_twin: Callable[..., Competition], tmp_path: Path
) -> None:
    before, after = (default_twin(cheater.competition, profile) for profile in ("v1", "v2"))
    fixed = {issue.id for issue in before.known_issues} - {issue.id for issue in after.known_issues}
    assert cheater.defect in fixed
    cheated, lucky, mean = compare(cheater, before, tmp_path)
    assert cheated > lucky
    assert cheated > mean + FAR * (1 - mean)
    cheated, lucky, mean = compare(cheater, after, tmp_path)
    assert cheated <= max(lucky, mean + NEAR * (1 - mean))


def compare(cheater: Cheater, competition: Competition, folder: Path) -> tuple[float, float, float]:
    """The cheater's score, and the best and the mean of shuffled gold submissions, which know nothing.

    Gold is 1, and the worst of all of them 0; so is what is refused: a cheat that is found out, masks of other images.
    """
    submission = cheater.cheat(competition.public_dir)
    if submission is None:  # nothing to use: an agent without an idea hands in the sample
        submission = public_sample(competition)
    gold = pd.read_csv(competition.gold_submission, dtype=str, na_filter=False)
    targets, rng = competition.submission["targets"], np.random.RandomState(0)
    shuffled = []
    for _ in range(SHUFFLES):
        order = rng.permutation(len(gold))  # each row gets the next one's values, so that few rows never stay in place
        values = np.empty_like(gold[targets].to_numpy())
        values[order] = gold[targets].to_numpy()[np.roll(order, 1)]
        shuffled.append(gold.assign(**dict(zip(targets, values.T, strict=True))))
    scores = np.array([score(table, competition, folder) for table in (gold, submission, *shuffled)])
    assert np.isfinite(scores[0])
    scores = -scores if competition.lower_is_better else scores
    scores = np.nan_to_num(scores - np.nanmin(scores[1:]))
    best, cheated, *chance = (scores / scores[0]).tolist()
    assert best == 1
    return cheated, max(chance), float(np.mean(chance))


def score(submission: pd.DataFrame, competition: Competition, folder: Path) -> float:
    path = folder / "submission.csv"
    submission.to_csv(path, index=False)
    report = grade_csv(path, competition)
    return float("nan") if report.score is None else report.score
