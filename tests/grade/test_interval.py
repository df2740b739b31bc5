"""Intervals by drawing test rows: they cover what they should, and are refused where draws mean nothing."""

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlebench.core.errors import InvalidSubmissionError
from mlebench.data.answers import load_answers
from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.grade import grade_csv
from mlebench.grade.interval import DRAWS, Draws, drawn_scores, interval_of
from mlebench.kit import align
from mlebench.metrics import accuracy, rmse
from mlebench.registry import Competition, Registry
from mlebench.scoring import GradeFn, Grader, Thresholds

THRESHOLDS = Thresholds(0.9, 0.8, 0.7, 0.5)


def _accuracy(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target="y")
    return accuracy(y_true, y_pred)


def _rmse(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target="y", values="numbers")
    return rmse(y_true, y_pred)


def _tables(rows: int, right: float, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    places = range(rows)
    truth = pd.DataFrame({"id": [f"row {place}" for place in places], "y": rng.integers(0, 2, rows), "place": places})
    wrong = rng.random(rows) >= right
    return truth.assign(y=truth["y"] ^ wrong).sample(frac=1, random_state=seed), truth


def test_draws_of_an_accuracy_spread_as_the_binomial_says() -> None:
    submission, truth = _tables(400, 0.75)
    grader = Grader("accuracy", _accuracy)
    score = grader.score(submission, truth)
    scores = drawn_scores(grader, submission, truth, {"id": "id"}, score)
    assert scores is not None
    assert len(scores) == DRAWS
    spread = math.sqrt(score * (1 - score) / 400)
    assert np.mean(scores) == pytest.approx(score, abs=4 * spread / math.sqrt(DRAWS))
    assert np.std(scores) == pytest.approx(spread, rel=0.2)
    interval = interval_of(score, scores, THRESHOLDS, lower=False)
    assert interval.score_low == pytest.approx(score - 1.96 * spread, abs=0.012)
    assert interval.score_high == pytest.approx(score + 1.96 * spread, abs=0.012)
    assert interval.medal_holds == np.mean(np.array(scores) >= 0.7)


def test_intervals_of_a_mean_error_cover_its_true_value_as_often_as_they_say() -> None:
    """400 worlds: the nominal 95 %, within four times the error of such a count."""
    covered = 0
    for world in range(400):
        rng = np.random.default_rng(world)
        squares = rng.normal(0, 2, 150) ** 2
        draws = np.sqrt(squares[rng.integers(0, 150, (DRAWS, 150))].mean(axis=1))
        interval = interval_of(math.sqrt(squares.mean()), draws.tolist(), THRESHOLDS, lower=True)
        assert interval.score_low is not None
        assert interval.score_high is not None
        covered += interval.score_low <= 2 <= interval.score_high
    assert covered / 400 == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 400))


def test_rows_that_share_an_id_are_drawn_together() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), 10)
    truth = pd.DataFrame({"id": groups, "y": np.zeros(600)})
    submission = truth.assign(y=np.repeat(rng.random(60), 10))

    def error(left: pd.DataFrame, right: pd.DataFrame) -> float:
        assert set(left["id"].value_counts()) == {10}
        return float((left.sort_values("id")["y"].to_numpy() - right.sort_values("id")["y"].to_numpy()).mean())

    grader = Grader("error", error)
    scores = drawn_scores(grader, submission, truth, {"id": "id"}, grader.score(submission, truth))
    assert scores is not None
    assert np.std(scores) == pytest.approx(submission["y"].std() / math.sqrt(60), rel=0.2)  # not of 600


@pytest.mark.parametrize("groups", [{"column": "patient"}, {"pattern": "p[0-9]+"}])
def test_groups_that_a_competition_declares_are_drawn_whole(groups: dict[str, str]) -> None:
    """The mean error of patients, each with ten rows that err equally and a last row that counts twice."""
    rng = np.random.default_rng(0)
    patients = np.repeat([f"p{number}" for number in range(60)], 10)
    ids = [f"{patient}_{row}" for patient, row in zip(patients, list(range(10)) * 60, strict=True)]
    truth = pd.DataFrame({"id": ids, "patient": patients, "y": np.zeros(600)})
    submission = truth[["id"]].assign(y=np.repeat(rng.random(60), 10)).sample(frac=1, random_state=0)

    def error(left: pd.DataFrame, right: pd.DataFrame) -> float:
        assert right["id"].is_unique
        merged = left.merge(right, on="id").sort_values("id")
        if "column" in groups:
            assert set(merged["patient"].value_counts()) == {10}  # two draws of one patient are two patients
        assert (merged["y_x"].to_numpy().reshape(60, 10).std(axis=1) < 1e-9).all()
        return float(np.mean(merged["y_x"]))

    grader = Grader("error", error)
    scores = drawn_scores(grader, submission, truth, {"id": "id", "groups": groups}, grader.score(submission, truth))
    assert scores is not None
    assert np.std(scores) == pytest.approx(submission["y"].std() / math.sqrt(60), rel=0.2)  # not of 600


def test_ids_of_a_group_keep_their_order() -> None:
    """A grader may take rows of a group by position: those of `c` are distinguished from those of `a` and `b`."""
    studies = np.repeat([f"s{number}" for number in range(20)], 3)
    truth = pd.DataFrame({"id": [f"{study}_{part}" for study, part in zip(studies, "cab" * 20, strict=True)]})
    truth["y"] = [part == "c" for part in "cab" * 20]

    def error(left: pd.DataFrame, right: pd.DataFrame) -> float:
        by_study = right.sort_values("id")["y"].to_numpy().reshape(-1, 3)
        assert (by_study == [False, False, True]).all()
        return 0.0

    facts = {"id": "id", "groups": {"pattern": "s[0-9]+"}}
    assert drawn_scores(Grader("error", error), truth, truth, facts, 0.0) == [0.0] * DRAWS


def _some_ids_count_more(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    weights = np.where(submission["id"].str.endswith("7"), 5.0, 1.0)
    merged = submission.merge(answers, on="id")
    return float(np.average(merged["y_x"] == merged["y_y"], weights=weights))


def _refuses_draws(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    if answers["place"].duplicated().any():
        raise InvalidSubmissionError("a place is taken twice")
    return 0.5


def _infinite(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    return math.inf


@pytest.mark.parametrize("grade", [_some_ids_count_more, _refuses_draws, _infinite])
def test_there_is_no_interval_where_a_grader_does_not_allow_draws(grade: GradeFn) -> None:
    submission, truth = _tables(100, 0.75)
    grader = Grader("odd", grade)
    assert drawn_scores(grader, submission, truth, {"id": "id"}, grader.score(submission, truth)) is None


def test_there_is_no_interval_without_rows_that_can_be_matched() -> None:
    submission, truth = _tables(100, 0.75)
    grader = Grader("rmse", _rmse)
    score = grader.score(submission, truth)
    assert drawn_scores(grader, submission, truth, {"id": "id"}, score) is not None
    assert drawn_scores(grader, submission, truth, {}, score) is None
    assert drawn_scores(grader, submission, truth.to_dict("records"), {"id": "id"}, score) is None
    assert drawn_scores(grader, submission.assign(id="elsewhere"), truth, {"id": "id"}, score) is None


def test_declared_groups_have_several_ids_each(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    declared = [
        competition
        for competition in map(registry.get_competition, registry.list_competition_ids())
        if "groups" in competition.submission
    ]
    assert len(declared) == 14
    for competition in declared:
        prepare(competition, TwinSource())
        answers, facts = load_answers(competition.answers), competition.submission
        if pattern := facts["groups"].get("pattern"):
            assert all(re.match(pattern, str(id)) for id in answers[facts["id"]]), competition.id
        assert 1 < Draws(answers, answers, facts).count < answers[facts["id"]].nunique(), competition.id


def test_reports_have_an_interval_on_request(titanic: Competition, tmp_path: Path) -> None:
    sample = grade_csv(titanic.sample_submission, titanic, interval=True)
    assert sample.score_low is not None
    assert sample.score_high is not None
    assert sample.score is not None
    assert sample.score_low < sample.score < sample.score_high
    assert sample.medal_holds is None
    gold = grade_csv(titanic.gold_submission, titanic, interval=True)
    assert (gold.score_low, gold.score_high, gold.medal_holds) == (1.0, 1.0, 1.0)
    assert grade_csv(titanic.sample_submission, titanic).score_low is None
    assert grade_csv(tmp_path / "none.csv", titanic, interval=True).score_low is None
