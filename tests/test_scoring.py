"""Thresholds, medals, graders and reports."""

import json
import logging
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.published import REPORT_KEYS

from mlebench.core.errors import InvalidSubmissionError, PrerequisiteError
from mlebench.registry import Registry
from mlebench.scoring import (
    CompetitionReport,
    Grader,
    Medals,
    Thresholds,
    lower_is_better,
    read_leaderboard,
)

pytestmark = pytest.mark.bytes

# Kaggle's table: for up to this many teams, the places that earn gold, silver and bronze.
PERCENT, PLACES = "percent", "places"
KAGGLE = [
    (99, (PERCENT, 10), (PERCENT, 20), (PERCENT, 40)),
    (249, (PLACES, 10), (PERCENT, 20), (PERCENT, 40)),
    (999, ("10 and 0.2 percent", 0), (PLACES, 50), (PLACES, 100)),
    (10**9, ("10 and 0.2 percent", 0), (PERCENT, 5), (PERCENT, 10)),
]
BOARD_SIZES = (1, 2, 4, 5, 9, 10, 11, 19, 50, 99, 100, 101, 249, 250, 251, 499, 500, 999, 1000, 1001, 1500, 4000)


def kaggle_places(teams: int) -> list[int]:
    rules = next(row[1:] for row in KAGGLE if teams <= row[0])
    counted = {
        PERCENT: lambda amount: teams * amount // 100,
        PLACES: lambda amount: amount,
        "10 and 0.2 percent": lambda _: 10 + teams * 2 // 1000,
    }
    return [max(1, counted[rule](amount)) for rule, amount in rules]


@pytest.mark.parametrize("teams", BOARD_SIZES)
@pytest.mark.parametrize("lower", [True, False])
def test_thresholds_are_the_scores_at_kaggles_medal_places(teams: int, lower: bool) -> None:
    board = [float(place if lower else -place) for place in range(1, teams + 1)]
    thresholds = Thresholds.of(board)
    assert list(thresholds[:3]) == [place if lower else -place for place in kaggle_places(teams)]
    assert thresholds.median == np.median(board)


@given(st.integers(1, 30_000))
def test_medal_places_hold_for_boards_of_any_size(teams: int) -> None:
    assert list(Thresholds.of(range(1, teams + 1))[:3]) == kaggle_places(teams)


def test_an_empty_board_has_no_thresholds() -> None:
    with pytest.raises(ValueError, match="without scores"):
        Thresholds.of([])


BOARDS = st.lists(st.integers(-20, 20).map(lambda n: n / 4), min_size=2, max_size=130)
SCORES = st.integers(-24, 24).map(lambda n: n / 4) | st.floats(-7, 7) | st.sampled_from([math.inf, -math.inf])


@given(BOARDS, st.booleans(), SCORES)
def test_a_score_earns_the_best_medal_whose_threshold_it_reaches(board: list[float], lower: bool, score: float) -> None:
    board = sorted(board, reverse=not lower)
    thresholds = Thresholds.of(board)
    medals = Medals.of(score, thresholds, lower=lower)
    reached = [bar is not None and (score <= bar if lower else score >= bar) for bar in thresholds[:3]]
    expected = [False, False, False]
    if any(reached):
        expected[reached.index(True)] = True
    assert list(medals[1:]) == expected
    assert medals.above_median == (score < thresholds.median if lower else score > thresholds.median)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=300), st.booleans(), SCORES)
def test_medals_are_never_two_even_on_a_board_out_of_order(board: list[float], lower: bool, score: float) -> None:
    assert Medals.of(score, Thresholds.of(board), lower=lower)[1:].count(True) <= 1


@given(BOARDS, SCORES)
def test_direction_is_symmetric(board: list[float], score: float) -> None:
    best_first = sorted(board)
    mirrored = [-value for value in best_first]
    ours = Medals.of(score, Thresholds.of(best_first), lower=True)
    assert ours == Medals.of(-score, Thresholds.of(mirrored), lower=False)


@pytest.mark.parametrize("score", [None, math.nan])
@pytest.mark.parametrize("lower", [True, False])
def test_no_score_earns_nothing(score: float | None, lower: bool) -> None:
    assert not any(Medals.of(score, Thresholds(1, 2, 3, 4), lower=lower))


def test_the_order_of_a_board_shows_its_direction() -> None:
    assert lower_is_better([0.1, 0.5, 0.9]) is True
    assert lower_is_better([0.9, 0.5, 0.1]) is False
    assert lower_is_better([0.5, 0.5]) is False


def _grader(outcome: Any) -> Grader:
    def grade(submission: pd.DataFrame, answers: Any) -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return Grader("some-metric", grade)


BOARD = pd.DataFrame({"score": [0.9, 0.8, 0.7, 0.6, 0.5], "teamId": range(5)})
FRAME = pd.DataFrame({"id": [1]})


def test_a_rank_has_the_eight_keys_clients_read() -> None:
    assert _grader(1.0).rank_score(0.75, BOARD) == {
        "gold_medal": False,
        "silver_medal": False,
        "bronze_medal": False,
        "above_median": True,
        "gold_threshold": 0.9,
        "silver_threshold": 0.9,
        "bronze_threshold": 0.8,
        "median_threshold": 0.7,
    }
    assert _grader(1.0).rank_score(None, BOARD)["gold_threshold"] == 0.9
    assert _grader(1.0).is_lower_better(BOARD) is False
    assert _grader(1.0).is_lower_better(BOARD.iloc[::-1]) is True


@pytest.mark.parametrize(
    ("outcome", "score"),
    [
        (0.1234549, 0.12345),
        (1 / 320, 0.00313),  # what the reference gives an accuracy of 1 in 320: Python's rounding
        (3 / 320, 0.00937),
        (np.float64(1 / 320), 0.00312),  # and numpy's for metrics that return its floats
        (np.float64(3 / 320), 0.00938),
        (7, 7.0),
        (-math.inf, -math.inf),
        (np.float64(1e305), math.inf),  # numpy multiplies before it rounds
        (1e305, 1e305),
    ],
)
def test_scores_have_five_decimals_rounded_as_published(outcome: float, score: float) -> None:
    rounded = _grader(outcome).score(FRAME, FRAME)
    assert rounded == score
    assert type(rounded) is float


def test_a_score_that_is_nan_stays_nan() -> None:
    assert math.isnan(_grader(math.nan).score(FRAME, FRAME))


def test_calling_a_grader_never_raises(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert _grader(InvalidSubmissionError("rows are missing"))(FRAME, FRAME) is None
        assert "Invalid submission: rows are missing" in caplog.text
        assert _grader(ZeroDivisionError("ours"))(FRAME, FRAME) is None
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR"]
    assert _grader(0.5)(FRAME, FRAME) == 0.5


def test_asking_for_a_score_distinguishes_the_agents_faults_from_ours() -> None:
    with pytest.raises(InvalidSubmissionError):
        _grader(InvalidSubmissionError("x")).score(FRAME, FRAME)
    with pytest.raises(ZeroDivisionError):
        _grader(ZeroDivisionError()).score(FRAME, FRAME)


def test_a_grader_is_made_from_a_config_and_imported_late() -> None:
    grader = Grader.from_dict({"name": "max", "grade_fn": "no.such.module:grade"})
    assert (grader.name, grader.module) == ("max", "no.such.module")
    with pytest.raises(ModuleNotFoundError):
        _ = grader.grade_fn
    assert Grader("max", "math:fmod").grade_fn is math.fmod
    with pytest.raises(ValueError, match="name"):
        Grader("", "math:fmod")


def _report(**changes: Any) -> CompetitionReport:
    values: dict[str, Any] = {
        "competition_id": "spaceship-titanic",
        "score": 0.8,
        "gold_threshold": 0.82,
        "silver_threshold": 0.81,
        "bronze_threshold": 0.8,
        "median_threshold": 0.79,
        "any_medal": True,
        "gold_medal": False,
        "silver_medal": False,
        "bronze_medal": True,
        "above_median": True,
        "submission_exists": True,
        "valid_submission": True,
        "is_lower_better": False,
        "created_at": datetime(2025, 1, 2, 3, 4, 5, 678),
        "submission_path": "submission.csv",
    }
    return CompetitionReport(**(values | changes))


def test_a_report_opens_with_the_references_sixteen_keys() -> None:
    assert list(_report().to_dict())[:16] == REPORT_KEYS


@pytest.mark.parametrize(
    "report",
    [
        _report(),
        _report(score=None, valid_submission=False, status="invalid", reason="rows are missing"),
        _report(created_at=datetime(2025, 1, 2, tzinfo=UTC)),
        _report(score=np.float64(0.5), gold_medal=np.bool_(True), gold_threshold=np.float64(0.5)),
    ],
)
def test_a_report_survives_json(report: CompetitionReport) -> None:
    data = report.to_dict()
    for name, value in data.items():
        assert value is None or type(value) in (bool, int, float, str), name
    assert CompetitionReport.from_dict(json.loads(json.dumps(data, allow_nan=False))) == report


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_a_score_that_json_cannot_hold_becomes_null(score: float) -> None:
    assert _report(score=score).to_dict()["score"] is None


def test_reports_of_the_reference_and_of_later_versions_can_be_read() -> None:
    theirs = {name: value for name, value in _report().to_dict().items() if name in REPORT_KEYS}
    assert CompetitionReport.from_dict(theirs) == _report()
    assert CompetitionReport.from_dict(theirs | {"added_later": 1}) == _report()


def _board_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "leaderboard.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_leaderboard_may_have_any_columns_beside_the_score(tmp_path: Path) -> None:
    text = "scoreNullable,teamId,score,hasScore\n0.9,7,0.9,True\n,8,,False\n1e-05,9,1e-05,True\n"
    assert read_leaderboard(_board_file(tmp_path, text)) == [0.9, 1e-05]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("place\n1\n", "needs a column `score` of numbers"),
        ("score\nbest\n", "needs a column `score` of numbers"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:e0\n", "git lfs pull"),
    ],
)
def test_a_file_that_is_not_a_leaderboard_is_reported_as_such(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(PrerequisiteError, match=fault):
        read_leaderboard(_board_file(tmp_path, text))
    with pytest.raises(PrerequisiteError, match="no leaderboard at"):
        read_leaderboard(tmp_path / "nowhere.csv")


def test_the_best_of_every_leaderboard_earns_gold_and_the_last_nothing(competition_id: str) -> None:
    board = read_leaderboard(Registry().get_competition(competition_id).leaderboard)
    thresholds, lower = Thresholds.of(board), lower_is_better(board)
    places = kaggle_places(len(board))
    assert list(thresholds[:3]) == [board[place - 1] for place in places]
    assert Medals.of(board[0], thresholds, lower=lower)[1:] == (True, False, False)
    assert not any(Medals.of(board[-1], thresholds, lower=lower))


@given(BOARDS, st.booleans(), SCORES, st.sets(st.sampled_from(["gold", "silver", "bronze"])))
def test_a_withheld_medal_is_unknown_and_the_next_lower_kept_medal_applies(
    board: list[float], lower: bool, score: float, withheld: set[str]
) -> None:
    thresholds = Thresholds.of(sorted(board, reverse=not lower))
    kept = {name: bar for name, bar in thresholds._asdict().items() if name not in {*withheld, "median"}}
    medals = Medals.of(score, thresholds.withholding(withheld), lower=lower)
    reached = [name for name, bar in kept.items() if (score <= bar if lower else score >= bar)]
    assert {name for name in ("gold", "silver", "bronze") if getattr(medals, f"{name}_medal") is None} == withheld
    assert [name for name in kept if getattr(medals, f"{name}_medal")] == reached[:1]
    assert medals.any_medal == (bool(reached) if kept else None)
