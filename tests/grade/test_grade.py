"""Submission → report, one and many; faults of the submission, the data and the grader are distinguished."""

import errno
import json
import math
import os
from pathlib import Path

import pandas as pd
import pytest

from mlebench.core.errors import NotPreparedError, UnknownCompetitionError
from mlebench.data.answers import JsonRecords, load_answers
from mlebench.grade import (
    GradingLimits,
    aggregate_reports,
    grade_csv,
    grade_jsonl,
    validate_format,
    validate_submission,
)
from mlebench.registry import Competition, Registry
from mlebench.scoring import GradeFn, Grader


@pytest.fixture
def rigged(titanic: Competition) -> Competition:
    """The competition with a grader that a test may replace."""
    return Registry(titanic.paths.data_dir).get_competition(titanic.id)


def _rig(competition: Competition, grade: GradeFn) -> None:
    object.__setattr__(competition, "grader", Grader("rigged", grade))


def test_gold_sample_and_missing_submissions(titanic: Competition, tmp_path: Path) -> None:
    gold = grade_csv(titanic.gold_submission, titanic)
    assert (gold.score, gold.gold_medal, gold.any_medal, gold.status) == (1.0, True, True, "graded")
    sample = grade_csv(titanic.sample_submission, titanic)
    assert sample.valid_submission
    assert not sample.any_medal
    for path in (tmp_path / "none.csv", tmp_path, Path("None"), titanic.public_dir / "description.md"):
        missing = grade_csv(path, titanic)
        assert (missing.score, missing.submission_exists, missing.valid_submission) == (None, False, False)
        assert (missing.status, missing.gold_threshold, missing.is_lower_better) == ("missing", 0.82066, False)


def test_a_submission_that_was_not_named_is_not_called_none(
    titanic: Competition, caplog: pytest.LogCaptureFixture
) -> None:
    assert grade_csv(Path("None"), titanic).reason == "the submission was not named"
    assert caplog.messages == ["Invalid submission file: the submission was not named"]


def test_a_competition_may_be_named_by_its_id(titanic: Competition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEBENCH_DATA_DIR", str(titanic.paths.data_dir))
    for limits in (None, GradingLimits()):
        assert grade_csv(titanic.gold_submission, titanic.id, limits=limits).score == 1.0
    with pytest.raises(UnknownCompetitionError, match="there is no competition 'no-such-one'"):
        grade_csv(titanic.gold_submission, "no-such-one")
    for check in (validate_submission, validate_format):
        assert check(titanic.sample_submission, titanic.id) == (True, "Submission is valid.")
    with pytest.raises(TypeError, match="needs a Competition or the id of one, not None"):
        grade_csv(titanic.gold_submission, None)  # pyright: ignore[reportArgumentType] a client's mistake


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b'PassengerId,Transported\n"unclosed,1\n', "CSV"),
        (b"a,b\n1,2,3\n1,2,3,4,5,6\n", "CSV"),
        (b"PassengerId\n1\n", "missing the following columns: Transported"),
    ],
)
def test_unreadable_submissions_are_the_agents_fault(
    titanic: Competition, tmp_path: Path, content: bytes, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "submission.csv"
    path.write_bytes(content)
    report = grade_csv(path, titanic)
    assert (report.status, report.score, report.submission_exists, report.valid_submission) == (
        "invalid",
        None,
        True,
        False,
    )
    assert words in str(report.reason)
    assert any(record.message == f"Invalid submission: {report.reason}" for record in caplog.records)
    assert validate_submission(path, titanic)[0] is False
    assert words in validate_format(path, titanic)[1]


def test_a_grader_that_fails_is_our_fault_and_says_so(rigged: Competition) -> None:
    def broken(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
        raise ZeroDivisionError("oops")

    _rig(rigged, broken)
    report = grade_csv(rigged.sample_submission, rigged)
    assert (report.status, report.score, report.valid_submission) == ("grader_error", None, False)
    assert "ZeroDivisionError" in str(report.reason)
    assert rigged.grader(pd.DataFrame(), pd.DataFrame()) is None  # what clients rely on


@pytest.mark.parametrize("fault", [errno.EIO, errno.ESTALE, errno.ENOSPC])
def test_a_disk_that_fails_while_a_grader_works_is_no_verdict(rigged: Competition, fault: int) -> None:
    """Nothing is wrong with submission or grader: whoever grades can do it again once the disk works."""

    def broken(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
        raise OSError(fault, os.strerror(fault), str(rigged.answers))

    _rig(rigged, broken)
    with pytest.raises(NotPreparedError, match=rf"cannot use {rigged.answers}: "):
        grade_csv(rigged.sample_submission, rigged)


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_valid_and_null_in_json(rigged: Competition, score: float) -> None:
    _rig(rigged, lambda submission, answers: score)
    report = grade_csv(rigged.sample_submission, rigged)
    assert report.valid_submission
    assert report.status == "graded"
    assert report.to_dict()["score"] is None
    assert str(score) in str(report.reason)
    json.dumps(report.to_dict(), allow_nan=False)


def test_scores_are_rounded_to_five_places(rigged: Competition) -> None:
    _rig(rigged, lambda submission, answers: 0.123456789)
    assert grade_csv(rigged.sample_submission, rigged).score == 0.12346


def test_validation_texts_are_what_clients_match(titanic: Competition, tmp_path: Path) -> None:
    for validate in (validate_submission, validate_format):
        assert validate(titanic.sample_submission, titanic) == (True, "Submission is valid.")
        for path in (tmp_path / "none.csv", titanic.public_dir / "description.md"):
            valid, message = validate(path, titanic)
            assert not valid
            assert message.startswith("Submission invalid! ")


def test_the_format_check_needs_no_private_file(titanic: Competition, tmp_path: Path) -> None:
    import shutil

    public_only = Registry(tmp_path).get_competition(titanic.id)
    shutil.copytree(titanic.public_dir, public_only.public_dir)
    assert validate_format(public_only.sample_submission, public_only)[0]
    assert not validate_format(public_only.public_dir / "train.csv", public_only)[0]
    with pytest.raises(NotPreparedError):
        validate_submission(public_only.sample_submission, public_only)


def test_grading_needs_only_the_private_folder(titanic: Competition, tmp_path: Path) -> None:
    import shutil

    private_only = Registry(tmp_path).get_competition(titanic.id)
    shutil.copytree(titanic.private_dir, private_only.private_dir)
    assert grade_csv(titanic.sample_submission, private_only).valid_submission


def test_every_grade_is_logged(titanic: Competition, tmp_path: Path) -> None:
    log = titanic.paths.data_dir / "grades.jsonl"
    before = len(log.read_text().splitlines()) if log.exists() else 0
    grade_csv(titanic.sample_submission, titanic)
    grade_csv(tmp_path / "none.csv", titanic)
    entries = [json.loads(line) for line in log.read_text().splitlines()[before:]]
    assert [entry["status"] for entry in entries] == ["graded", "missing"]
    assert len(entries[0]["submission_sha256"]) == 64
    assert entries[1]["submission_sha256"] is None


class TestMany:
    def _write(self, path: Path, *lines: str) -> Path:
        path.write_text("\n".join(lines) + "\n")
        return path

    def test_the_summary_has_the_references_keys_and_counts(self, titanic: Competition, tmp_path: Path) -> None:
        entries = self._write(
            tmp_path / "s.jsonl",
            "# a comment",
            "// another",
            "",
            json.dumps(
                {"competition_id": titanic.id, "submission_path": str(titanic.gold_submission), "logs_path": "x"}
            ),
            json.dumps({"competition_id": titanic.id, "submission_path": str(titanic.sample_submission)}),
            json.dumps({"competition_id": titanic.id, "submission_path": None}),
        )
        summary = grade_jsonl(entries, tmp_path / "new" / "out", Registry(titanic.paths.data_dir))
        (saved,) = (tmp_path / "new" / "out").iterdir()
        assert saved.name.endswith("_grading_report.json")
        assert json.loads(saved.read_text()) == summary
        counts = {name: value for name, value in summary.items() if not isinstance(value, list)}
        assert counts == {
            "total_runs": 3,
            "total_runs_with_submissions": 2,
            "total_valid_submissions": 2,
            "total_medals": 1,
            "total_gold_medals": 1,
            "total_silver_medals": 0,
            "total_bronze_medals": 0,
            "total_above_median": 1,
        }
        assert [report["status"] for report in summary["competition_reports"]] == ["graded", "graded", "missing"]

    def test_unprepared_data_does_not_stop_the_others(self, titanic: Competition, tmp_path: Path) -> None:
        other = next(id for id in Registry().list_competition_ids() if id != titanic.id)
        entries = self._write(
            tmp_path / "s.jsonl",
            json.dumps({"competition_id": other, "submission_path": "x.csv"}),
            json.dumps({"competition_id": titanic.id, "submission_path": str(titanic.sample_submission)}),
        )
        summary = grade_jsonl(entries, tmp_path / "out", Registry(titanic.paths.data_dir))
        assert [report["status"] for report in summary["competition_reports"]] == ["not_prepared", "graded"]

    def test_no_reports_give_zeros(self) -> None:
        assert aggregate_reports([])["total_runs"] == 0


def test_a_folder_that_is_a_link_to_the_answers_earns_nothing(titanic: Competition, tmp_path: Path) -> None:
    (tmp_path / "submission").symlink_to(titanic.private_dir)
    report = grade_csv(tmp_path / "submission" / titanic.answers.name, titanic)
    assert (report.status, report.submission_exists) == ("missing", False)
    assert "is in a folder that is a symbolic link" in str(report.reason)


def test_answers_in_json_lines_can_be_iterated_again_and_indexed(tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    path.write_text('{"a": 1}\n{"a": "é\\u2028"}\n{"a": 3}\n', encoding="utf-8")
    answers = JsonRecords(path)
    assert [*answers, *answers] == 2 * load_answers(path)
    assert len(answers) == 3
    assert answers[-1] == {"a": 3}


def test_answers_in_json_lines_are_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    path.write_text('{"a": 1}\nnot json\n', encoding="utf-8")
    assert next(iter(JsonRecords(path))) == {"a": 1}  # the second line was not read
