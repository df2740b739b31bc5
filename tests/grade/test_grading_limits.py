"""A batch in parallel: limits of time and memory cost a row its score, and no other row anything."""

import contextlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.competition_folders import add_competition
from support.waiting import wait_until

from mlebench.core import isolate
from mlebench.grade import GradingLimits, grade_jsonl
from mlebench.registry import Competition, Registry

ODD = """
import os, time

def grade(submission, answers):
    match submission.columns[0]:
        case "hang": time.sleep(3600)
        case "deaf":
            import signal
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM): signal.signal(number, signal.SIG_IGN)
            while True: pass
        case "stop the worker":
            import signal
            os.kill(os.getppid(), signal.SIGSTOP)
        case "grow":
            held = []
            while True: held.append(bytearray(os.urandom(1024)) * 8192)
        case "too much": bytearray(1 << 60)
        case "slow": time.sleep(1)
    return float(len(submission))
"""


@pytest.fixture
def odd(titanic: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    add_competition(tmp_path / "own", "odd", ODD, titanic, tmp_path / "data")
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(tmp_path / "own"))
    return Registry(tmp_path / "data")


def _batch(folder: Path, words: list[str]) -> Path:
    """A submission for each word, which names its column; with as many rows as submissions before it."""
    lines = []
    for number, word in enumerate(words):
        path = folder / f"{number}.csv"
        path.write_text(f"{word}\n" + "1\n" * number)
        lines.append(json.dumps({"competition_id": "odd", "submission_path": str(path)}))
    (folder / "s.jsonl").write_text("\n".join(lines))
    return folder / "s.jsonl"


def _processes_about(folder: Path) -> list[str]:
    """Those that were started with the folder in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if str(folder).encode() in path.read_bytes():
                found.append(path.parent.name)
    return found


def test_reports_are_in_the_order_of_lines_whichever_ends_first(odd: Registry, tmp_path: Path) -> None:
    file = _batch(tmp_path, ["slow", *["quick"] * 9])
    summary = grade_jsonl(file, tmp_path / "out", odd, jobs=3)
    assert [report["score"] for report in summary["competition_reports"]] == list(range(10))
    logged = [json.loads(line) for line in (tmp_path / "data" / "grades.jsonl").read_text().splitlines()]
    assert len(logged) == 10


def test_a_row_over_its_time_limit_gets_a_status_and_the_others_are_graded(odd: Registry, tmp_path: Path) -> None:
    file = _batch(tmp_path, ["hang", "quick", "deaf", "quick", "stop the worker", "quick", "quick"])
    summary = grade_jsonl(file, tmp_path / "out", odd, jobs=2, limits=GradingLimits(seconds=8))
    reports = summary["competition_reports"]
    assert [report["status"] for report in reports] == [*["limit", "graded"] * 2, *["graded"] * 3]
    for report in reports[:3:2]:
        assert (report["score"], report["valid_submission"], report["submission_exists"]) == (None, False, True)
        assert report["reason"] == "grading took longer than 8 s"
    logged = [json.loads(line)["status"] for line in (tmp_path / "data" / "grades.jsonl").read_text().splitlines()]
    assert logged.count("limit") == 2
    assert isolate._current
    server = isolate._current.process.pid
    if isolate._current.process.poll() is None:  # a busy machine may have taken its standstill for its end
        assert not Path(f"/proc/{server}/task/{server}/children").read_text(), "all calls have ended"


def test_a_row_over_its_memory_limit_gets_a_status(odd: Registry, tmp_path: Path) -> None:
    file = _batch(tmp_path, ["grow", "quick", "too much", "quick"])
    summary = grade_jsonl(file, tmp_path / "out", odd, limits=GradingLimits(memory=700_000_000))
    reports = summary["competition_reports"]
    assert [report["status"] for report in reports] == ["limit", "graded"] * 2
    assert {report["reason"] for report in reports[::2]} == {"grading took more than 700000000 bytes of memory"}


def test_ctrl_c_ends_a_batch_and_all_its_processes(odd: Registry, tmp_path: Path) -> None:
    file = _batch(tmp_path, ["hang"] * 6)
    command = [sys.executable, "-m", "mlebench", "grade", "--submission", file, "--output-dir", tmp_path / "out"]
    command += ["--data-dir", tmp_path / "data", "--jobs", "3"]
    batch = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        # Itself, the one that forks, and three forks.
        wait_until(lambda: len(_processes_about(tmp_path)) >= 5, "three submissions are being graded", process=batch)
        batch.send_signal(signal.SIGINT)
        _, errors = batch.communicate(timeout=120)
    finally:
        batch.kill()
    assert batch.returncode == 130
    assert "Traceback" not in errors
    wait_until(lambda: not _processes_about(tmp_path), "all processes of the batch have ended")
    assert list((tmp_path / "out").iterdir()) == []
    assert not (tmp_path / "data" / "grades.jsonl").exists()


def test_an_exceeded_limit_is_exit_code_1_and_is_in_the_table(odd: Registry, tmp_path: Path) -> None:
    file = _batch(tmp_path, ["quick", "hang"])
    command = [sys.executable, "-m", "mlebench", "grade", "--submission", file, "--output-dir", tmp_path / "out"]
    command += ["--data-dir", tmp_path / "data", "--time-limit", "8s", "--memory", "1g"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["total_valid_submissions"] == 1
    assert [line.split()[:3] for line in done.stderr.splitlines()[-2:]] == [
        ["odd", "graded", "0"],
        ["odd", "limit", "-"],
    ]
