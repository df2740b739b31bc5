"""What a grade leaves behind: the fields of a report, the log of grades, and whether a run was in progress."""

import errno
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.competition_folders import drop_privileges
from support.published import REPORT_KEYS

import mlebench
from mlebench.core.errors import PrerequisiteError
from mlebench.core.untrusted import FileTooLargeError
from mlebench.data.open_runs import BELIEVED_FOR, mark_open, open_runs, unmark_open
from mlebench.grade import grade_csv, validate_submission
from mlebench.grade.in_process import HashedStream
from mlebench.registry import Competition, Registry
from mlebench.scoring import CompetitionReport, RunInfo


def test_a_report_says_what_was_graded_by_which_version_and_for_which_run(titanic: Competition) -> None:
    report = grade_csv(titanic.sample_submission, titanic, RunInfo("r1", agent="dummy", seed=3))
    data = report.to_dict()
    assert list(data)[:16] == REPORT_KEYS
    assert data["submission_sha256"] == hashlib.sha256(titanic.sample_submission.read_bytes()).hexdigest()
    assert (data["run_id"], data["agent"], data["seed"]) == ("r1", "dummy", 3)
    assert (data["schema"], data["mlebench"], data["profile"]) == (1, mlebench.__version__, "v1")
    assert data["graded_at"].endswith("+00:00")
    assert data["graded_during_run"] is False
    assert data["competition_version"] == titanic.version == 1
    assert CompetitionReport.from_dict(data) == report
    logged = json.loads((titanic.paths.data_dir / "grades.jsonl").read_text().splitlines()[-1])
    for name in ("submission_sha256", "status", "run_id", "agent", "seed", "profile", "schema", "mlebench"):
        assert logged[name] == data[name]
    with pytest.raises(PrerequisiteError, match="update"):
        CompetitionReport.from_dict(data | {"schema": 2})


def test_invalid_submissions_have_a_hash_of_the_whole_file_too(titanic: Competition, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_bytes(b"a,b\n1,2,3,4\n1\n\xff" + b"x" * 5_000_000)
    report = grade_csv(path, titanic)
    assert report.status == "invalid"
    assert report.submission_sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_hash_is_that_of_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_bytes(b"a\n1\n")
    with path.open("rb") as file:
        stream = HashedStream(file, 100)
        assert stream.read() == b"a\n1\n"
        with path.open("ab") as more:
            more.write(b"2\n")
        assert stream.sha256() == hashlib.sha256(b"a\n1\n").hexdigest()


@pytest.mark.parametrize("size", [-1, 3])
def test_a_file_that_grows_beyond_the_limit_is_not_read_to_the_end(tmp_path: Path, size: int) -> None:
    path = tmp_path / "s.csv"
    path.write_bytes(b"1" * 100)
    with path.open("rb") as file:
        stream = HashedStream(file, 8)
        with pytest.raises(FileTooLargeError):
            list(iter(lambda: stream.read(size), b""))
        assert file.tell() == 9


def test_a_grade_made_while_a_run_is_open_is_stamped(titanic: Competition, tmp_path: Path) -> None:
    mark_open(titanic, tmp_path, "run-1")
    try:
        assert open_runs(titanic) == ["run-1"]
        assert grade_csv(titanic.sample_submission, titanic).graded_during_run
        of_another_run = grade_csv(titanic.sample_submission, titanic, RunInfo("r2"))  # its agent has ended
        assert not of_another_run.graded_during_run
    finally:
        unmark_open(titanic, "run-1")
    assert open_runs(titanic) == []
    assert not grade_csv(titanic.sample_submission, titanic).graded_during_run
    unmark_open(titanic, "run-1")
    with pytest.raises(ValueError, match="plain name"):
        mark_open(titanic, tmp_path, "../run")


def test_killed_runs_count_as_closed_and_remote_ones_as_open_for_a_while(titanic: Competition, tmp_path: Path) -> None:
    mark = titanic.paths.runs_open / "killed"
    program = (
        "import sys; from pathlib import Path; from mlebench.data.open_runs import mark_open, open_runs\n"
        "from mlebench.registry import Registry\n"
        f"competition = Registry({str(titanic.paths.data_dir)!r}).get_competition({titanic.id!r})\n"
        "mark_open(competition, Path('.'), 'killed'); print(open_runs(competition))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['killed']\n"
    left = mark.read_text()
    assert open_runs(titanic) == []
    assert not mark.exists()
    mine = json.loads(left)
    mine["process"] |= {"pid": os.getpid()}  # the process id went to another process
    mark.write_text(json.dumps(mine))
    assert open_runs(titanic) == []
    elsewhere = json.dumps(mine | {"process": mine["process"] | {"host": "elsewhere"}})
    for content in (elsewhere, json.dumps(mine | {"process": None}), "{", "[]", '{"a": 1}'):
        mark.write_text(content)
        assert open_runs(titanic) == ["killed"]
        past = time.time() - BELIEVED_FOR - 60
        os.utime(mark, (past, past))
        assert open_runs(titanic) == []
        assert not mark.exists()


READ_ONLY = """
import sys
from pathlib import Path
from mlebench.data.open_runs import mark_open, open_runs, unmark_open
from mlebench.grade import grade_csv, grade_jsonl
from mlebench.registry import Registry
registry = Registry(sys.argv[1])
competition = registry.get_competition("spaceship-titanic")
mark_open(competition, Path("."), "run")
unmark_open(competition, "run")
print(open_runs(competition))
print(grade_csv(competition.sample_submission, competition).status)
print(grade_jsonl(Path(sys.argv[2]), Path(sys.argv[3]), registry)["total_valid_submissions"])
"""


def test_with_read_only_data_grades_are_logged_beside_the_report_or_reported_as_not_logged(
    titanic: Competition, tmp_path: Path
) -> None:
    import shutil

    data = tmp_path / "data"
    competition = Registry(data).get_competition(titanic.id)
    shutil.copytree(titanic.paths.prepared, competition.paths.prepared)
    entry = {"competition_id": titanic.id, "submission_path": str(titanic.sample_submission)}
    (tmp_path / "s.jsonl").write_text(json.dumps(entry))
    for folder in (data / titanic.id, data):
        folder.chmod(0o555)
    command = [sys.executable, "-c", READ_ONLY, data, tmp_path / "s.jsonl", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=drop_privileges())
    assert done.stdout == "[]\ngraded\n1\n", done.stderr
    assert done.stderr.count("This grade was not logged: cannot write to") == 1
    (line,) = (tmp_path / "out" / "grades.jsonl").read_text().splitlines()
    assert json.loads(line)["competition"] == titanic.id
    assert not (data / "grades.jsonl").exists()


def test_a_line_of_the_log_that_a_full_disk_cut_spoils_no_other(
    titanic: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = titanic.paths.data_dir / "grades.jsonl"
    grade_csv(titanic.sample_submission, titanic)
    before = log.read_text().splitlines()
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:20]))
        grade_csv(titanic.sample_submission, titanic)
    assert "This grade was not logged" in caplog.text
    assert "the disk is full" in caplog.text
    grade_csv(titanic.sample_submission, titanic)
    *earlier, cut, last = log.read_text().splitlines()
    assert earlier == before
    assert len(cut) == 20
    assert json.loads(last)["competition"] == titanic.id


def test_validations_are_looks_at_the_answers(titanic: Competition, tmp_path: Path) -> None:
    log = titanic.paths.data_dir / "grades.jsonl"
    before = len(log.read_text().splitlines()) if log.exists() else 0
    short = tmp_path / "short.csv"
    short.write_text("PassengerId,Transported\n0001_01,True\n")
    assert validate_submission(titanic.sample_submission, titanic)[0]
    assert not validate_submission(short, titanic)[0]
    lines = [json.loads(line) for line in log.read_text().splitlines()[before:]]
    assert [line["status"] for line in lines] == ["valid", "invalid"]
    assert lines[1]["submission_sha256"] == hashlib.sha256(short.read_bytes()).hexdigest()


def test_validations_that_cannot_be_logged_are_said_once(
    titanic: Competition, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr("mlebench.grade.log._append", refuse)
    for _ in range(3):
        assert validate_submission(titanic.sample_submission, titanic)[0]
    said = [record.message for record in caplog.records if "not logged" in record.message]
    log = titanic.paths.data_dir / "grades.jsonl"
    assert said == [f"Validations are not logged: cannot write to {log}: the disk is read-only"]
