"""Badges: which reports have them, and that they are computed from the facts of the report's own profile."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.grading_reports import report as reference_report

from mlebench.cli import main
from mlebench.config import KnownIssue
from mlebench.core.paths import GROUPS
from mlebench.grade import grade_csv
from mlebench.grade.badges import badges_of, medal_with_badges
from mlebench.registry import Competition
from mlebench.scoring import CompetitionReport


def issue(id: str, kind: str) -> KnownIssue:
    return KnownIssue(id, kind, f"What is wrong: {id}.")


def test_leaks_and_contamination_have_badges_and_other_issues_do_not() -> None:
    issues = [issue("S1", "split"), issue("C5", "contamination"), issue("L4", "leak"), KnownIssue(None, None, "Old.")]
    leak, contamination = badges_of(issues)
    assert (leak.kind, leak.issue, leak.label) == ("leak", "L4", "L4")
    assert leak.text == "may have had help from L4: What is wrong: L4."
    assert (contamination.kind, contamination.label) == ("contamination", "C5")


@pytest.mark.parametrize(
    ("test_units", "medal_holds", "text"),
    [
        (99, None, "may be chance: the test set has 99 units, fewer than 100"),
        (1, 0.8, "may be chance: the test set has 1 unit, fewer than 100"),
        (100, 0.7975, "may be chance: the medal holds in 79.8% of resamples, less than 80%"),
        (
            30,
            0.5,
            "may be chance: the test set has 30 units, fewer than 100, and the medal holds in 50.0% of resamples, ",
        ),
    ],
)
def test_low_power_has_one_badge_with_all_reasons(test_units: int, medal_holds: float | None, text: str) -> None:
    (badge,) = badges_of((), test_units, medal_holds)
    assert (badge.kind, badge.label) == ("low_power", "low_power")
    assert badge.text.startswith(text)


@pytest.mark.parametrize(("test_units", "medal_holds"), [(None, None), (100, None), (None, 0.8), (5000, 1.0)])
def test_what_is_unknown_or_large_enough_has_no_badge(test_units: int | None, medal_holds: float | None) -> None:
    assert badges_of((), test_units, medal_holds) == ()


def test_a_medal_in_a_table_names_its_badges() -> None:
    assert medal_with_badges("gold", ["L4", "low_power"]) == "gold (L4, low_power)"
    assert medal_with_badges("gold", []) == "gold"
    assert medal_with_badges(None, ["L4"]) is None


Twin = Callable[..., Competition]


def test_a_report_has_the_badges_of_its_profile(default_twin: Twin) -> None:
    v1, v2 = (default_twin("random-acts-of-pizza", profile) for profile in ("v1", "v2"))
    reports = [grade_csv(competition.gold_submission, competition) for competition in (v1, v2)]
    labels = [report.badges for report in reports]
    assert labels == ["leak L6, low_power", "low_power"]  # v2 has no such leak, and its twin is as small
    rows = v1.answers.read_text(encoding="utf-8").count("\n") - 1
    assert [report.test_units for report in reports] == [rows, rows]


def test_groups_are_the_test_units_of_profile_v2(default_twin: Twin) -> None:
    competition = default_twin("ml2021spring-hw2", "v2")
    header, *lines = (competition.private_dir / GROUPS).read_text(encoding="utf-8").splitlines()
    groups = {line.split(",")[header.split(",").index("group")] for line in lines}
    assert len(groups) < len(lines)
    assert grade_csv(competition.gold_submission, competition).test_units == len(groups)


def test_a_submission_without_a_score_has_no_badges(default_twin: Twin, tmp_path: Path) -> None:
    report = grade_csv(tmp_path / "none.csv", default_twin("random-acts-of-pizza"))
    assert (report.status, report.test_units, report.badges) == ("missing", None, None)


def test_reports_with_and_without_badges_are_read_back(default_twin: Twin) -> None:
    competition = default_twin("random-acts-of-pizza")
    report = grade_csv(competition.gold_submission, competition)
    assert report.badges
    assert CompetitionReport.from_dict(json.loads(json.dumps(report.to_dict()))).badges == report.badges
    assert CompetitionReport.from_record(report.to_record()).badges == report.badges
    assert CompetitionReport.from_dict(reference_report("random-acts-of-pizza")).badges is None


def test_the_command_line_shows_badges_beside_a_medal(
    default_twin: Twin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    competition = default_twin("random-acts-of-pizza")
    line = {"competition_id": competition.id, "submission_path": str(competition.gold_submission)}
    (tmp_path / "lines.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    data = ["--data-dir", str(competition.paths.data_dir)]
    with pytest.raises(SystemExit):
        main(["grade", "--submission", str(tmp_path / "lines.jsonl"), "--output-dir", str(tmp_path / "out"), *data])
    assert "gold (L6, low_power)" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["grade-sample", str(competition.gold_submission), competition.id, *data])
    assert json.loads(capsys.readouterr().out)["badges"] == "leak L6, low_power"
