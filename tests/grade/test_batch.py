"""A batch: every line gets a status, and none costs the others their reports."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.competition_folders import add_competition

from mlebench.core.errors import PrerequisiteError
from mlebench.data.open_runs import mark_open
from mlebench.grade import grade_jsonl
from mlebench.grade.batch import read_entries
from mlebench.grade.limits import GradingLimits
from mlebench.registry import Competition, Registry

EVIL = """
import os, signal, sys, time

def grade(submission, answers):
    print("noise")
    match submission.columns[0]:
        case "exit": sys.exit(0)
        case "_exit": os._exit(0)
        case "kill": os.kill(os.getpid(), signal.SIGKILL)
        case "crash": os.kill(os.getpid(), signal.SIGSEGV)
        case "kill the worker":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(3600)
        case "interrupt": raise KeyboardInterrupt
        case "recurse": return grade(submission, answers)
    return 0.75
"""


def _lines(path: Path, *lines: Any) -> Path:
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    return path


def _entry(competition: str, path: Path | str) -> dict[str, str]:
    return {"competition_id": competition, "submission_path": str(path)}


def test_bad_lines_are_listed_with_their_line_numbers(titanic: Competition, tmp_path: Path) -> None:
    good = _entry(titanic.id, titanic.sample_submission)
    odd_ids = [None, 3, [1], {"a": 1}, True]
    odd_paths = [3, [1], {"a": 1}, False]
    lines = [
        b"# a comment",
        b"",
        *(good | {"competition_id": id} for id in odd_ids),
        *(good | {"submission_path": path} for path in odd_paths),
        b"// another",
        b"[" * 200_000,
        b"not json",
        b"\xff\xfe",
        b"[1]",
        b"3",
        {"competition_id": titanic.id},
        good | {"competition_id": "no-such-one"},
        good | {"competition_id": "a" * 10_000},
        good | {"competition_id": "../spaceship-titanic"},
        good | {"competition_id": "a\0b"},
        good,
    ]
    summary = grade_jsonl(_lines(tmp_path / "s.jsonl", *lines), tmp_path / "out", Registry(titanic.paths.data_dir))
    assert [(row["line"], row["status"]) for row in summary["unjudged"]] == [
        *((line, "bad_entry") for line in (3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 18)),
        *((line, "unknown_competition") for line in (19, 20, 21, 22)),
    ]
    reasons = {row["line"]: row["reason"] for row in summary["unjudged"]}
    assert all(reasons.values())
    assert (reasons[4], reasons[18]) == ("`competition_id` must be a string", "the line has no `submission_path`")
    assert [row["competition_id"] for row in summary["unjudged"]][:6] == [None] * 5 + [titanic.id]
    assert [report["status"] for report in summary["competition_reports"]] == ["graded"]
    assert summary["total_runs"] == 1


@given(st.lists(st.one_of(st.binary(max_size=40), st.text(max_size=40).map(str.encode)), max_size=6))
def test_any_bytes_are_entries_or_faults(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("any") / "s.jsonl"
    path.write_bytes(b"\n".join(lines))
    for entry in read_entries(path):
        assert entry.fault or entry.competition_id is not None
        assert entry.line >= 1


def test_a_competitions_code_cannot_end_a_batch(
    titanic: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    add_competition(tmp_path / "own", "evil", EVIL, titanic, data)
    add_competition(tmp_path / "own", "no-grade", "", titanic, data)
    add_competition(tmp_path / "own", "one-argument", "def grade(submission): return 1.0", titanic, data)
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(tmp_path / "own"))
    words = ["exit", "_exit", "kill", "crash", "kill the worker", "interrupt", "recurse", "nothing"]
    for word in words:
        (tmp_path / f"{word}.csv").write_text(f"{word}\n1\n")
    rows = [_entry("evil", tmp_path / f"{word}.csv") for word in words]
    rows += [_entry(id, tmp_path / "nothing.csv") for id in ("no-grade", "one-argument")]
    registry = Registry(data)
    mark_open(registry.get_competition("evil"), tmp_path, "run")
    summary = grade_jsonl(_lines(tmp_path / "s.jsonl", *rows), tmp_path / "out", registry)
    reports = summary["competition_reports"]
    assert [report["graded_during_run"] for report in reports] == [True] * 8 + [False] * 2
    assert [report["status"] for report in reports] == ["grader_error"] * 7 + ["graded"] + ["grader_error"] * 2
    for report, word in zip(reports, ["sys.exit(0)", "exit code 0", "SIGKILL", "SIGSEGV", "killed"], strict=False):
        assert word in report["reason"]
    assert "noise" not in capfd.readouterr().out
    logged = [json.loads(line) for line in (data / "grades.jsonl").read_text().splitlines()]
    assert [line["status"] for line in logged] == [report["status"] for report in reports]


def test_a_fault_in_one_rows_file_affects_only_that_row(titanic: Competition, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "link.csv").symlink_to(titanic.answers)
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "large.csv").write_bytes(b"a\n" * (1 << 20))
    names = ["pipe.csv", "folder.csv", "link.csv", "loop.csv", "zero.csv", "n" * 300 + ".csv", "a\0.csv", "\ud800.csv"]
    rows = [_entry(titanic.id, str(tmp_path / name)) for name in [*names, "large.csv"]]
    file = _lines(tmp_path / "s.jsonl", *rows, {"competition_id": titanic.id, "submission_path": None})
    summary = grade_jsonl(file, tmp_path / "out", Registry(titanic.paths.data_dir), limits=GradingLimits(size=1 << 20))
    reports = summary["competition_reports"]
    assert [report["status"] for report in reports] == ["missing"] * 8 + ["invalid", "missing"]
    for report, word in zip(
        reports,
        ["pipe", "folder", "link", "link", "link", "too long", "no file", "no file", "1048576", "not named"],
        strict=True,
    ):
        assert word in report["reason"]
        assert report["submission_sha256"] is None
    assert summary["unjudged"] == []


def test_a_bad_output_folder_is_noticed_before_anything_is_graded(titanic: Competition, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = titanic.paths.data_dir / "grades.jsonl"
    before = log.read_bytes() if log.exists() else b""
    file = _lines(tmp_path / "s.jsonl", _entry(titanic.id, titanic.sample_submission))
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(PrerequisiteError, match="cannot write"):
            grade_jsonl(file, folder, Registry(titanic.paths.data_dir))
    assert (log.read_bytes() if log.exists() else b"") == before


def test_a_report_that_is_in_its_place_was_written_whatever_the_disk_does_next(
    titanic: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _lines(tmp_path / "s.jsonl", b"{}")
    monkeypatch.setattr(os, "unlink", lambda *_, **__: (_ for _ in ()).throw(OSError(errno.EIO, "failed")))
    grade_jsonl(file, tmp_path / "reports", Registry(titanic.paths.data_dir))
    assert list((tmp_path / "reports").glob("*_grading_report.json"))


def test_runs_in_the_same_second_write_separate_reports(
    titanic: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlebench.grade.batch.timestamp", lambda: "2026-01-02T03-04-05-GMT")
    file = _lines(tmp_path / "s.jsonl", b"{}")

    def meanwhile(entries: list) -> list:
        if len(list(out.glob("*.part"))) < 3:
            grade_jsonl(file, out, Registry(titanic.paths.data_dir), track=meanwhile)
        return entries

    out = tmp_path / "out"
    grade_jsonl(file, out, Registry(titanic.paths.data_dir), track=meanwhile)
    grade_jsonl(file, out, Registry(titanic.paths.data_dir))
    names = sorted(path.name for path in out.iterdir())
    assert len(names) == 4
    assert all(name.startswith("2026-01-02T03-04-05-GMT") for name in names)
    assert all(name.endswith("_grading_report.json") for name in names)
    assert "2026-01-02T03-04-05-GMT_grading_report.json" in names


def test_a_script_without_a_main_guard_can_grade_a_batch(titanic: Competition, tmp_path: Path) -> None:
    file = _lines(tmp_path / "s.jsonl", _entry(titanic.id, titanic.gold_submission))
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom mlebench.grade import grade_jsonl\n"
        "from mlebench.registry import registry\n"
        "summary = grade_jsonl(Path(sys.argv[1]), Path(sys.argv[2]), registry.set_data_dir(sys.argv[3]))\n"
        "print(summary['total_gold_medals'])\n"
    )
    command = [sys.executable, script, file, tmp_path / "out", titanic.paths.data_dir]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_the_table_tells_submissions_of_one_competition_apart(titanic: Competition, tmp_path: Path) -> None:
    for name in ("a.csv", f"{'long' * 30}/b.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(titanic.sample_submission.read_bytes())
    paths = [tmp_path / "a.csv", tmp_path / f"{'long' * 30}/b.csv", tmp_path / "none.csv"]
    lines = [_entry(titanic.id, path) | {"seed": seed} for path, seed in zip(paths, (0, 7, True), strict=True)]
    file = _lines(tmp_path / "submissions.jsonl", *lines, {"competition_id": titanic.id})
    header, first, second, third, fourth = _table(file, titanic, tmp_path)
    assert header == ["competition", "seed", "status", "score", "medal", "path", "reason"]
    assert (first[1], first[5]) == ("0", str(paths[0])[-80:])
    assert second[1] == "7"
    assert second[5].startswith("…")
    assert second[5].endswith("long/b.csv")
    assert third[1] == "-", "true is not a number"
    assert (fourth[2], fourth[5]) == ("bad_entry", "line 4")

    (report,) = (tmp_path / "reports").glob("*_grading_report.json")
    assert [one["seed"] for one in json.loads(report.read_bytes())["competition_reports"]] == [0, 7, None]

    without = _table(_lines(tmp_path / "plain.jsonl", _entry(titanic.id, paths[0])), titanic, tmp_path)
    assert without[0] == ["competition", "status", "score", "medal", "path", "reason"]


def _table(submissions: Path, competition: Competition, tmp_path: Path) -> list[list[str]]:
    """The table that `mlebench grade` prints on stderr."""
    command = [sys.executable, "-m", "mlebench", "grade", "--submission", str(submissions)]
    folders = ["--output-dir", str(tmp_path / "reports"), "--data-dir", str(competition.paths.data_dir)]
    done = subprocess.run([*command, *folders], capture_output=True, text=True, check=False)
    lines = [re.split("  +", line) for line in done.stderr.splitlines()]
    return lines[next(index for index, line in enumerate(lines) if line[0] == "competition") :]
