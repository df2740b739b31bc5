"""A run grades in a process of its own: whatever a submission makes a grader do, the runner lives on."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.competition_folders import add_competition
from support.records import report_of
from support.run_fixtures import Mlebench, reports_of

from mlebench.core.isolate import thread_variables
from mlebench.records.run_groups import Group
from mlebench.registry import Competition

# Kills its process; writes down before what is loaded in the process that started the one that forks: the runner.
DEADLY = """
import os, signal
from pathlib import Path

def grade(submission, answers):
    if submission.columns[0] == "kill":
        Path(__file__).with_name("runner").write_text(Path(f"/proc/{parent(os.getppid())}/maps").read_text())
        os.kill(os.getpid(), signal.SIGKILL)
    return 0.5

def parent(pid):
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("PPid:")]
    return line.split()[1]
"""


def test_a_submission_of_commas_is_invalid_and_the_run_ends(run: Callable[..., Group]) -> None:
    group = run("head -c 600000 /dev/zero | tr '\\0' , > $SUBMISSION_DIR/submission.csv")
    (ended,) = group.runs()
    assert (ended.record.ended, ended.record.submission) == ("finished", "present")
    (report,) = reports_of(group)
    assert (report["status"], report["reason"]) == ("invalid", "Submission has a row with more than 10000 columns.")


def test_a_submission_that_kills_its_grader_does_not_kill_the_runner(
    titanic: Competition, mlebench: Mlebench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_competition(tmp_path / "own", "deadly", DEADLY, titanic, tmp_path / "data")
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(tmp_path / "own"))
    for name in thread_variables():
        monkeypatch.delenv(name, raising=False)
    program = "env > $LOGS_DIR/env.txt; printf 'kill\\n1\\n' > $SUBMISSION_DIR/submission.csv"
    named = ["--agent-command", program, "-c", "deadly", "--sandbox", "process", "--time-limit", "60"]
    folders = ["--runs-dir", str(tmp_path / "runs"), "--data-dir", str(tmp_path / "data")]
    done = mlebench("run", *named, *folders, code=1)  # through no fault of the agent, there is no result
    (folder,) = (tmp_path / "runs").iterdir()
    (ended,) = Group.read(folder).runs()
    assert (ended.record.ended, len(ended.record.attempts)) == ("finished", 1)
    report = report_of(ended)
    assert (report.status, "was killed by SIGKILL" in str(report.reason)) == ("grader_error", True)
    assert f"{ended.paths.root.name} was not graded: " in done.stderr
    assert f"mlebench grade {folder}" in done.stderr
    (graded,) = (tmp_path / "data" / "grades.jsonl").read_text().splitlines()
    assert json.loads(graded)["run_id"] == ended.record.run_id
    # The runner loads no numeric library, and what we set for our own processes does not reach the agent.
    assert "numpy" not in (tmp_path / "own/deadly/runner").read_text()
    assert not set(thread_variables()) & {
        line.partition("=")[0] for line in (ended.paths.logs / "env.txt").read_text().splitlines()
    }
