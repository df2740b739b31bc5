"""Killed at any time and resumed: no run is lost, none counts twice, and nothing is left behind."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from support.run_fixtures import SUBMIT, Start, reports_of
from support.sandboxes import leftovers, processes, require, sandbox_params
from support.waiting import wait_until

from mlebench.core.leases import acquire
from mlebench.records.run_groups import Group, Run
from mlebench.registry import Competition
from mlebench.sandbox import sandbox_named
from mlebench.sandbox.resource_usage import descendants

KILLS = int(os.environ.get("MLEBENCH_RUN_KILLS", "8"))
VICTIMS = ("runner", "exec", "supervisor", "all")
PROGRAM = f"echo begun; {SUBMIT}; sleep 0.3"


@pytest.mark.timeout(600 + 40 * KILLS)
def test_kill_at_any_time_and_resume(start: Start, titanic: Competition, tmp_path: Path) -> None:
    sandbox = "process" if sandbox_named("bubblewrap").fault() else "bubblewrap"
    _kill_and_resume(start, titanic, tmp_path, sandbox, runs=30, kills=KILLS)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", sandbox_params("docker", "podman"))
def test_kill_at_any_time_and_resume_with_containers(
    start: Start, titanic: Competition, tmp_path: Path, engine: str
) -> None:
    require(engine)
    _kill_and_resume(start, titanic, tmp_path, engine, runs=5, kills=4)


def _kill_and_resume(start: Start, titanic: Competition, tmp_path: Path, sandbox: str, runs: int, kills: int) -> None:
    chance = random.Random(20261116)
    options = ["--agent-command", PROGRAM, "-c", titanic.id, "--runs-dir", str(tmp_path), "--sandbox", sandbox]
    runner = start("run", *options, "--seeds", str(runs), "--workers", "3")
    group = _planned(tmp_path, runner)
    killed: Counter[Path] = Counter()
    plan = [VICTIMS[number % len(VICTIMS)] for number in range(kills)]
    chance.shuffle(plan)
    for victim in plan:
        pids = _victims(victim, runner, group, killed, chance)
        if pids is None:
            break
        for pid in pids:
            _kill(pid)
        if victim in ("runner", "all"):
            runner.wait()
            runner = start("run", "--resume", str(group.paths.root), "--workers", str(chance.choice((2, 3, 4))))
    else:
        assert sum(killed.values()) >= plan.count("exec") + plan.count("supervisor")
    assert runner.wait(600) == 0
    _check(group, titanic, runs)
    cancelled = sum(len(run.record.attempts) - 1 for run in group.runs())
    assert cancelled > 0, "no kill has hit an agent"


def _victims(
    victim: str,
    runner: "subprocess.Popen[str]",
    group: Group,
    killed: Counter[Path],
    chance: random.Random,
) -> list[int] | None:
    """Which process to kill at a random moment; None if the group was faster.

    A run is given up if its agent was started three times in vain; so none is hit that often.
    """
    time.sleep(chance.uniform(0.0, 1.2))
    while runner.poll() is None:
        time.sleep(chance.uniform(0.0, 0.15))
        if victim == "runner":
            return [runner.pid]
        execs = _execs(group)
        supervisors = {pid: folder for owner, folder in execs.items() for pid in _supervisors(owner)}
        if victim == "all" and all(killed[folder] < 2 for folder in execs.values()):
            killed.update(execs.values())
            return [runner.pid, *execs, *supervisors]
        targets = execs if victim == "exec" else supervisors if victim == "supervisor" else {}
        if candidates := sorted((pid, folder) for pid, folder in targets.items() if killed[folder] < 2):
            pid, folder = chance.choice(candidates)
            killed[folder] += 1
            return [pid]
    return None


def _planned(runs_dir: Path, runner: "subprocess.Popen[str]") -> Group:
    planned = "*_run-group_*/group.json"
    (path,) = wait_until(lambda: list(runs_dir.glob(planned)), "the group is planned", process=runner)
    return Group.read(path.parent)


def _execs(group: Group) -> dict[int, Path]:
    """The processes that work on runs of a group, with the runs' folders."""
    found = {}
    for pid in processes(f"\0exec\0{group.paths.root}"):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if "exec" in words:
            found[pid] = Path(words[words.index("exec") + 1])
    return found


def _supervisors(owner: int) -> list[int]:
    return sorted(set(processes("mlebench.sandbox.supervisor")) & descendants(owner))


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _check(group: Group, titanic: Competition, count: int) -> None:
    """Check that every run has ended once, and nothing of what was killed is left."""
    group = Group.read(group.paths.root)
    runs = list(group.runs())
    assert [run.record.seed for run in runs] == list(range(count))
    for run in runs:
        _check_run(run)
        assert (run.record.ended, run.record.submission) == ("finished", "present"), run.record.detail
        assert run.paths.submission.read_bytes() == titanic.sample_submission.read_bytes()
        assert run.paths.log.read_text() == "begun\n"
    ids = [run.record.run_id for run in runs]
    assert sorted(report["run_id"] for report in reports_of(group)) == sorted(ids)
    assert (group.paths.root / str(group.record.report)).is_file()
    lines = (titanic.paths.data_dir / "grades.jsonl").read_text().splitlines()
    graded = Counter(json.loads(line)["run_id"] for line in lines if line.endswith("}"))  # a full disk cuts some
    assert all(graded[id] for id in ids)
    metadata = json.loads(group.paths.metadata.read_text())["runs"]
    assert metadata == {run.paths.root.name: {"success": True} for run in runs}
    _nothing_is_left(group)


def _check_run(run: Run) -> None:
    """Check that a run has one result, and that every attempt says how it ended."""
    record = run.record
    assert record.state == "ended"
    assert json.loads((run.paths.result / "record.json").read_text()) == json.loads(run.paths.record.read_text())
    assert [attempt.number for attempt in record.attempts] == list(range(1, len(record.attempts) + 1))
    assert not any(attempt.is_open for attempt in record.attempts)
    assert record.attempts[-1].ended == record.ended
    for attempt in record.attempts[:-1]:
        assert attempt.ended in ("cancelled", "infra_error")
        if attempt.supervisor:
            assert (run.paths.attempt(attempt.number) / "submission").is_dir()
    assert len({attempt.token for attempt in record.attempts}) == len(record.attempts)
    names = {path.name for path in run.paths.root.iterdir()}
    allowed = {
        "run.json",
        "leases",
        "result",
        "submission",
        "logs",
        "code",
        "run.log",
        "snapshots",
        "attempts",
        "runner.log",
    }
    assert names <= allowed
    assert [path.name for path in run.paths.result.iterdir()] == ["record.json"]
    lease = acquire(run.paths.leases, wait=False)
    assert lease is not None, "nobody could do it again"
    lease.release()


def _nothing_is_left(group: Group) -> None:
    assert not (group.paths.root / ".work").exists()
    assert not list(group.paths.root.glob("*.mlebench-part-*"))
    assert not processes(str(group.paths.root))
    tokens = [attempt.token for run in group.runs() for attempt in run.record.attempts]
    assert not [left for left in leftovers() if any(token in left for token in tokens)]
    assert not [token for token in tokens if any(Path(str(group.record.data_dir)).glob(f"*/runs-open/{token}"))]


def test_two_runners_on_one_group(start: Start, titanic: Competition, tmp_path: Path) -> None:
    options = ["--agent-command", PROGRAM, "-c", titanic.id, "--runs-dir", str(tmp_path), "--sandbox", "process"]
    first = start("run", *options, "--seeds", "6", "--workers", "2")
    group = _planned(tmp_path, first)
    second = start("run", "--resume", str(group.paths.root), "--workers", "2")
    assert (first.wait(200), second.wait(200)) == (0, 0)
    _check(group, titanic, 6)
    assert all(len(run.record.attempts) == 1 for run in group.runs()), "both have done the same run"
    lines = (titanic.paths.data_dir / "grades.jsonl").read_text().splitlines()
    graded = Counter(json.loads(line)["run_id"] for line in lines if line.endswith("}"))  # a full disk cuts some
    assert [graded[run.record.run_id] for run in group.runs()] == [1] * 6
