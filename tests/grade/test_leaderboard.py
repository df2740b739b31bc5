"""Where a score stands, checked against another way of counting."""

import dataclasses
import json
import math
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench.grade import grade_csv
from mlebench.grade.leaderboard import AT_OPTIMUM, BEYOND_BEST, REACH_ONE_OR_ZERO, Position, normalised
from mlebench.registry import Competition, Registry
from mlebench.scoring import CompetitionReport, Thresholds

GOLDEN = Path(__file__).parents[1] / "golden"
NEW_FIELDS = ("teams", "teams_beaten", "percentile", "normalised_score", "suspicious", "known_issues")
scores = st.integers(-20, 20).map(lambda number: number / 4)


@given(st.lists(scores, min_size=2, max_size=60), scores, st.booleans())
def test_a_percentile_is_the_share_of_teams_below(board: list[float], score: float, lower: bool) -> None:
    competition = dataclasses.replace(Registry().get_competition("spaceship-titanic"), higher_is_better=not lower)
    board.sort(reverse=not lower)
    standing = Position.of(score, competition, board, Thresholds.of(board).gold)
    ranks = pd.Series([*board, score]).rank(method="max", ascending=lower)  # of equals, the worst place
    assert standing.teams_beaten == len(board) + 1 - ranks.iloc[-1]
    assert standing.teams_beaten is not None
    assert standing.percentile == standing.teams_beaten / len(board)
    assert (BEYOND_BEST in (standing.suspicious or "")) == (ranks.iloc[-1] == 1)


@given(scores, scores, scores, st.sampled_from([-1, 1]))
def test_a_normalised_score_is_a_place_on_the_line_from_sample_to_gold(
    score: float, sample: float, gold: float, sign: int
) -> None:
    share = normalised(score, sample, gold, sign)
    if sign * (gold - sample) <= 0:
        assert share is None
    else:
        assert share is not None
        assert sample * (1 - share) + gold * share == pytest.approx(score)
        assert (share > 1) == (sign * score > sign * gold)


@pytest.mark.parametrize(
    ("score", "sample"), [(1.0, None), (1.0, math.nan), (1.0, math.inf), (1.0, -math.inf), (1e308, -1e308)]
)
def test_without_both_ends_nothing_is_normalised(score: float, sample: float | None) -> None:
    assert normalised(score, sample, 1.0, 1) is None


def _golden_golds(id: str) -> set[float]:
    return {part["scores"]["gold"] for part in json.loads((GOLDEN / f"{id}.json").read_text()).values()}


def test_the_optimum_of_a_metric_is_what_the_truth_itself_scores() -> None:
    registry = Registry()
    used = set()
    for id in registry.list_competition_ids():
        competition = registry.get_competition(id)
        best = 0.0 if competition.lower_is_better else 1.0
        used |= {competition.grader.name}
        assert (_golden_golds(id) == {best}) == (competition.grader.name in REACH_ONE_OR_ZERO), id
    assert used >= REACH_ONE_OR_ZERO


def test_reports_say_where_a_score_stands(titanic: Competition, tmp_path: Path) -> None:
    gold = grade_csv(titanic.gold_submission, titanic).to_dict()
    assert gold["teams"] == gold["teams_beaten"] > 1000
    assert gold["percentile"] == 1.0
    assert gold["suspicious"] == f"{BEYOND_BEST} and {AT_OPTIMUM}"
    assert gold["known_issues"] == len(titanic.known_issues)
    assert gold["normalised_score"] is None  # on a twin
    sample = grade_csv(titanic.sample_submission, titanic)
    assert sample.suspicious is None
    assert sample.percentile is not None
    assert sample.percentile < 0.5
    missing = grade_csv(tmp_path / "none.csv", titanic).to_dict()
    assert [missing[name] for name in NEW_FIELDS[1:5]] == [None] * 4
    assert missing["teams"] == gold["teams"]


def test_real_data_has_a_normalised_score(titanic: Competition, tmp_path: Path) -> None:
    import shutil

    real = Registry(tmp_path).get_competition(titanic.id)
    shutil.copytree(titanic.private_dir, real.private_dir)  # without a manifest, it is unknown that it is a twin
    report = grade_csv(titanic.gold_submission, real)
    assert real.sample_score is not None
    assert report.gold_threshold is not None
    expected = (1.0 - real.sample_score) / (report.gold_threshold - real.sample_score)
    assert report.normalised_score == pytest.approx(expected)


def test_reports_of_older_versions_are_read(titanic: Competition) -> None:
    data = grade_csv(titanic.sample_submission, titanic).to_dict()
    assert all(not isinstance(value, dict | list) for value in data.values())
    old = CompetitionReport.from_dict({name: value for name, value in data.items() if name not in NEW_FIELDS})
    assert [getattr(old, name) for name in NEW_FIELDS] == [None] * len(NEW_FIELDS)
    assert old.score == data["score"]
