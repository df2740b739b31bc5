"""Ctrl-C and SIGTERM, agents that misbehave, and what is shown meanwhile."""

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from support.run_fixtures import SUBMIT, Mlebench, Start
from support.sandboxes import (
    ALL,
    SMALL,
    leftovers,
    make_task,
    processes,
    require,
    run_task,
    sandbox_params,
    wait_until_gone,
)
from support.waiting import read_terminal, wait_until

from mlebench.records.run_groups import Group, Run
from mlebench.registry import Competition
from mlebench.run.retry_rules import LOST_STARTS
from mlebench.sandbox import sandbox_named, session

Runner = Callable[..., Group]
ISOLATING = "process" if sandbox_named("bubblewrap").fault() else "bubblewrap"


@pytest.fixture
def mark() -> str:
    """How long to sleep, in seconds: an hour and a fraction by which the test knows its processes from all others."""
    return f"3600.{uuid4().int % 10**12:012}"


def _begin(start: Start, titanic: Competition, runs_dir: Path, mark: str) -> tuple["subprocess.Popen[str]", Run]:
    """A runner whose one agent has submitted something and hangs."""
    program = f"{SUBMIT}; echo begun; sleep {mark}"
    options = ["--agent-command", program, "-c", titanic.id, "--runs-dir", str(runs_dir), "--sandbox", ISOLATING]
    runner = start("run", *options, stderr=subprocess.PIPE)
    return runner, _begun(runs_dir, runner)


def _begun(runs_dir: Path, process: "subprocess.Popen[str]") -> Run:
    wait_until(
        lambda: any(log.read_text() == "begun\n" for log in runs_dir.glob("*/.work/*/run.log")),
        "the agent has begun",
        process=process,
    )
    (record,) = runs_dir.glob("*/*/run.json")
    return Run.read(record.parent)


def _attempts(run: Run) -> list[str]:
    """How each attempt ended; everything submitted and printed by then is kept."""
    run = Run.read(run.paths.root)
    assert run.record.state == "planned"
    for attempt in run.record.attempts:
        aside = run.paths.attempt(attempt.number)
        assert (aside / "run.log").read_text() == "begun\n"
        assert (aside / "submission" / "submission.csv").is_file()
    return [str(attempt.ended) for attempt in run.record.attempts]


def _nothing_is_left(run: Run, mark: str) -> None:
    wait_until_gone(mark)
    assert not processes(str(run.paths.root))
    tokens = [attempt.token for attempt in Run.read(run.paths.root).record.attempts]
    assert not [left for left in leftovers() if any(token in left for token in tokens)]
    assert not (run.paths.group.root / ".work").exists()


def test_ctrl_c_ends_runs_cleanly(start: Start, titanic: Competition, tmp_path: Path, mark: str) -> None:
    runner, run = _begin(start, titanic, tmp_path, mark)
    runner.send_signal(signal.SIGINT)
    _, errors = runner.communicate(timeout=120)
    assert runner.returncode == 130
    assert f"mlebench run --resume {run.paths.group.root}" in errors
    assert "Traceback" not in errors
    assert _attempts(run) == ["cancelled"]
    _nothing_is_left(run, mark)


def test_sigterm_ends_one_run_cleanly(start: Start, titanic: Competition, tmp_path: Path, mark: str) -> None:
    runner, run = _begin(start, titanic, tmp_path, mark)
    runner.send_signal(signal.SIGINT)
    assert runner.wait(120) == 130
    worker = start("run", "exec", str(run.paths.root))
    _begun(tmp_path, worker)
    worker.terminate()
    assert worker.wait(120) == 75
    assert _attempts(run) == ["cancelled", "cancelled"]
    _nothing_is_left(run, mark)


# Schedulers signal every process, including engines' clients. docker's dies of it; podman's ends as if all was well.
@pytest.mark.parametrize(("engine", "end"), [("docker", "kill -TERM $$"), ("podman", "exit 0")])
def test_a_stop_while_a_sandbox_is_set_up_is_not_a_failure(
    start: Start, titanic: Competition, tmp_path: Path, mark: str, engine: str, end: str
) -> None:
    runner, run = _begin(start, titanic, tmp_path, mark)
    runner.send_signal(signal.SIGINT)
    assert runner.wait(120) == 130
    group = json.loads(run.paths.group.record.read_text())
    run.paths.group.record.write_text(json.dumps(group | {"sandbox": engine}))
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / engine).write_text(f"#!/bin/sh\nkill -TERM $PPID\n{end}\n")
    (programs / engine).chmod(0o755)
    worker = start("run", "exec", str(run.paths.root), env={"PATH": f"{programs}:{os.environ['PATH']}"})
    assert worker.wait(120) == 75
    ended = [attempt.ended for attempt in Run.read(run.paths.root).record.attempts]
    assert ended == ["cancelled", "cancelled"]


# In a plain process, the runner is above the supervisor, and that above the relay, the agent's parent.
RUNNER = "above() { awk '{print $4}' /proc/$1/stat; }; supervisor=$(above $PPID); runner=$(above $supervisor)"


def test_an_agent_cannot_stop_its_runner(run: Runner) -> None:
    """Otherwise it would be started again, as often as it likes."""
    group = run(f"{RUNNER}; for number in TERM INT TERM; do kill -$number $runner; sleep 1; done; {SUBMIT}")
    (ended,) = group.runs()
    assert (ended.record.ended, ended.record.starts) == ("finished", 1)
    assert "a signal from the agent" in ended.paths.runner_log.read_text()


def test_signals_of_which_nobody_knows_the_sender_start_an_agent_three_times(run: Runner) -> None:
    """It has ended by the time the runner looks: it could have been the agent's."""
    group = run(f"{RUNNER}; while :; do (kill -TERM $runner); sleep 0.3; done", code=1)
    (ended,) = group.runs()
    assert (ended.record.ended, ended.record.starts) == ("infra_error", LOST_STARTS)
    assert [attempt.interrupted_by for attempt in ended.record.attempts] == ["lost"] * LOST_STARTS


def test_a_supervisor_that_an_agent_stops_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str) -> None:
    """Otherwise no limit would hold, and the clock would stand still."""
    monkeypatch.setattr(session, "SILENCE", 2.0)
    task = make_task(tmp_path, f"kill -STOP $PPID; sleep {mark}", replace(SMALL, seconds=1))
    outcome, _ = run_task("process", task)
    sandbox_named("process").remove_leftovers(task.name)  # as the runner does then
    assert (outcome.ended, "somebody had stopped it" in (outcome.detail or "")) == ("infra_error", True)
    wait_until_gone(mark)


@pytest.mark.parametrize("sandbox", sandbox_params(*ALL))
def test_signals_of_an_agent_to_its_own_processes_reach_nobody_else(run: Runner, sandbox: str) -> None:
    require(sandbox)
    group = run(f"trap '' INT TERM HUP; kill -INT 0; kill -TERM 0; kill -HUP 0; {SUBMIT}", sandbox=sandbox)
    (ended,) = group.runs()
    assert (ended.record.ended, ended.record.starts, ended.record.submission) == ("finished", 1, "present")


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _is_pending(pid: int, number: signal.Signals) -> bool:
    """Whether a stopped process has been sent a signal."""
    return bool(int(_status(pid)["ShdPnd"], 16) & 1 << number - 1)


def test_ctrl_c_twice_ends_them_at_once(
    mlebench: Mlebench, start: Start, titanic: Competition, tmp_path: Path, mark: str
) -> None:
    runner, run = _begin(start, titanic, tmp_path, mark)
    (worker,) = processes(f"\0exec\0{run.paths.root}")
    os.kill(worker, signal.SIGSTOP)  # it cannot end anything cleanly
    wait_until(lambda: _status(worker)["State"].startswith("T"), "the worker is stopped")
    runner.send_signal(signal.SIGINT)
    wait_until(lambda: _is_pending(worker, signal.SIGTERM), "the runner has passed the first interrupt on")
    time.sleep(1)
    assert runner.poll() is None, "it did not wait for its runs"
    runner.send_signal(signal.SIGINT)
    assert runner.wait(120) == 130
    wait_until_gone(mark)
    # What could not be cleaned up then is cleaned up when the run is repeated.
    group = json.loads(run.paths.group.record.read_text())
    limits = group["limits"] | {"seconds": 3}
    run.paths.group.record.write_text(json.dumps(group | {"limits": limits}))
    mlebench("run", "--resume", str(run.paths.group.root))
    after = Run.read(run.paths.root)
    assert [attempt.ended for attempt in after.record.attempts] == ["cancelled", "timeout"]
    assert (after.paths.attempt(1) / "run.log").read_text() == "begun\n"
    _nothing_is_left(run, mark)


def test_a_group_continues_whatever_an_agent_does(run: Runner, titanic: Competition, mark: str) -> None:
    program = (
        f"case $SEED in 0) {SUBMIT}; kill -SEGV $$;; 1) sleep {mark};; 2) echo nothing;; "
        f"3) for i in $(seq 50); do setsid sleep {mark} & done; {SUBMIT};; 4) {SUBMIT};; esac"
    )
    group = run(program, "--seeds", "5", "--time-limit", "12", sandbox=ISOLATING)
    ends = [(one.record.ended, one.record.submission) for one in group.runs()]
    assert ends == [
        ("agent_error", "present"),
        ("timeout", "none"),
        ("finished", "none"),
        ("finished", "present"),
        ("finished", "present"),
    ]
    wait_until_gone(mark)


def test_two_gigabytes_of_log(run: Runner) -> None:
    require("bubblewrap")
    group = run(f"echo first; yes | head -c 2G; echo last; {SUBMIT}", "--time-limit", "600", sandbox="bubblewrap")
    (one,) = group.runs()
    assert (one.record.ended, one.record.submission) == ("finished", "present")
    assert one.paths.log.stat().st_size < 110 << 20
    assert (one.record.conditions.used.log_dropped or 0) > 1 << 30
    with one.paths.log.open("rb") as log:
        assert log.readline() == b"first\n"
        log.seek(-5, 2)
        assert log.read() == b"last\n"


def _noisy(folder: Path) -> str:
    """A program that prints escape codes and runs until there is a file `seen`."""
    words = r"\033]0;title\007\033[31mlast words\033[2J\n"
    return f"{SUBMIT}; printf '{words}'; until [ -e {folder}/seen ]; do sleep 0.1; done"


def test_a_table_is_kept_up_to_date_on_a_terminal(start: Start, titanic: Competition, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    options = ["--agent-command", _noisy(tmp_path), "-c", titanic.id, "--runs-dir", str(tmp_path / "runs")]
    runner = start("run", *options, "--sandbox", "process", stderr=theirs, env={"COLUMNS": "150", "TERM": "xterm"})
    os.close(theirs)

    def end_the_agent(shown: bytes) -> None:
        if b"last words" in shown:
            (tmp_path / "seen").touch()

    text = read_terminal(ours, "the runner has ended", heard=end_the_agent).decode()
    assert runner.wait(120) == 0
    assert "time left" in text
    assert "running" in text
    assert "last words" in text
    for code in ("\033]0;", "\007", "\033[31m", "\033[2J"):
        assert code not in text


def test_plain_lines_elsewhere(start: Start, titanic: Competition, tmp_path: Path) -> None:
    options = ["--agent-command", _noisy(tmp_path), "-c", titanic.id, "--runs-dir", str(tmp_path / "runs")]
    output = tmp_path / "output"
    with output.open("w") as file:
        runner = start("run", *options, "--sandbox", "process", stdout=file, stderr=file)
    line = f"{titanic.id} seed 0: running\n"
    wait_until(lambda: line in output.read_text(), "a line says that the run is running", process=runner)
    (tmp_path / "seen").touch()
    assert runner.wait(120) == 0
    assert f"{titanic.id} seed 0: finished, score" in output.read_text()
    assert "\033" not in output.read_text()
