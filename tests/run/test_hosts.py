"""A host on which nothing can start does not use up runs that another could do; a cancelled group stays cancelled."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.groups import plan_group
from support.run_fixtures import SUBMIT, Mlebench, Start
from support.sandboxes import breakable_bwrap, require
from support.waiting import wait_until

from mlebench.core import leases
from mlebench.core.errors import PrerequisiteError
from mlebench.core.leases import EXPIRY, Lease, Observer, acquire
from mlebench.core.processes import Process
from mlebench.records import base, write
from mlebench.records.run_groups import Group, Run, counts
from mlebench.registry import Competition
from mlebench.run import execute as execution
from mlebench.run import hosts
from mlebench.run.execute import execute
from mlebench.run.retry_rules import FINAL, HOST_FAILURES, MAY_BE_RETRIED

BROKEN = "alpha"


@pytest.fixture
def planned(titanic: Competition, tmp_path: Path) -> Callable[..., Group]:
    """Plans runs: of the oracle, which needs no sandbox, or of a program."""

    def call(seeds: int = 3, program: str | None = None, sandbox: str = "process", workers: int = 1) -> Group:
        return plan_group(
            titanic,
            tmp_path / "runs",
            agent=None if program else "oracle",
            agent_command=program,
            sandbox=sandbox,
            seeds=seeds,
            workers=workers,
        )

    return call


@pytest.fixture
def programs() -> Iterator[Path]:
    require("bubblewrap")
    with breakable_bwrap(BROKEN) as folder:
        yield folder


def _logs(group: Group) -> list[Path]:
    """What running agents print to."""
    return list(group.paths.root.glob(".work/*/run.log"))


def _on(node: str, programs: Path) -> dict[str, str]:
    return {"PATH": f"{programs}:{os.environ['PATH']}", hosts.NODE_VARIABLE: node}


def test_a_host_that_cannot_start_agents_stops_and_its_runs_stay_planned(
    mlebench: Mlebench, planned: Callable[..., Group], programs: Path
) -> None:
    group = planned(3, SUBMIT, "bubblewrap")
    resume = ["run", "--resume", str(group.paths.root)]
    said = mlebench(*resume, env=_on(BROKEN, programs), code=1).stderr
    assert f"{BROKEN} takes no more runs of this group" in said
    assert "No permissions to create new namespace" in said
    assert "3 runs have not ended" in said
    attempts = [attempt for run in group.runs() for attempt in run.record.attempts]
    assert [(attempt.ended, attempt.node) for attempt in attempts] == [("infra_error", BROKEN)] * 2
    assert {run.record.state for run in group.runs()} == {"planned"}
    assert f"{BROKEN} takes no more runs" in mlebench("runs", "list", str(group.paths.root)).stderr
    (programs / "broken").write_text("")
    mlebench("run", "exec", str(next(iter(group.runs())).paths.root), env=_on(BROKEN, programs), code=75)
    mlebench(*resume, env=_on(BROKEN, programs))
    assert {(run.record.ended, run.record.starts) for run in group.runs()} == {("finished", 1)}


def test_of_two_runners_the_healthy_one_does_what_the_broken_one_could_not(
    start: Start, planned: Callable[..., Group], programs: Path
) -> None:
    group = planned(4, SUBMIT, "bubblewrap")
    resume = ["run", "--resume", str(group.paths.root), "--workers"]
    broken = start(*resume, "3", env=_on(BROKEN, programs))
    healthy = start(*resume, "1", env=_on("beta", programs))
    assert healthy.wait(120) == 0
    assert broken.wait(120) in (0, 1)
    assert [run.record.ended for run in group.runs()] == ["finished"] * 4
    failed = [attempt for run in group.runs() for attempt in run.record.attempts if attempt.ended != "finished"]
    assert {attempt.node for attempt in failed} == {BROKEN}


def test_failures_count_only_in_a_row(planned: Callable[..., Group], monkeypatch: pytest.MonkeyPatch) -> None:
    group = planned()
    first, second, third = (run.paths.root for run in group.runs())

    def fails(*_: object) -> None:
        raise PrerequisiteError("this host has no data")

    for folder in (first, second):
        with monkeypatch.context() as patch:
            patch.setattr(execution, "_load", fails)
            assert execute(folder) == MAY_BE_RETRIED
        assert execute(third if folder == first else first) == FINAL
    assert hosts.stopped_hosts(group.paths) == {}


def test_attempts_that_never_started_an_agent_do_not_use_up_a_runs_retries(
    planned: Callable[..., Group], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = planned()
    run = next(iter(group.runs()))

    def fails(*_: object) -> None:
        raise PrerequisiteError("this host has no data")

    for _ in range(5):
        with monkeypatch.context() as patch:
            patch.setattr(execution, "_load", fails)
            assert execute(run.paths.root) == MAY_BE_RETRIED
        hosts.forget_failures(group.paths, only_here=True)
    assert execute(run.paths.root) == FINAL
    after = Run.read(run.paths.root).record
    assert (after.ended, after.starts, len(after.attempts)) == ("finished", 1, 6)


def test_a_crash_before_an_agent_has_started_is_held_against_the_host(
    planned: Callable[..., Group], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = planned()
    run = next(iter(group.runs()))

    def crashes(*_: object) -> None:
        raise RuntimeError("libc is broken")

    with monkeypatch.context() as patch:
        patch.setattr(execution, "_load", crashes)
        for _ in range(HOST_FAILURES):
            with pytest.raises(RuntimeError):
                execute(run.paths.root)
    assert hosts.stopped_hosts(group.paths) == {hosts.this_host(): "libc is broken"}
    assert execute(run.paths.root) == MAY_BE_RETRIED
    assert not Run.read(run.paths.root).record.starts


def test_a_run_that_cannot_start_anywhere_is_left_planned_after_a_few_tries(
    mlebench: Mlebench, planned: Callable[..., Group]
) -> None:
    """Other agents start on this host, so it is not stopped: without a limit, this would never end."""
    group = planned(3)
    first, *_ = group.runs()
    first.write(competition="nonexistent")
    write(group.paths.record, group.record.changed(competitions=[*group.record.competitions, "nonexistent"]))
    said = mlebench("run", "--resume", str(group.paths.root), code=1).stderr
    assert "1 runs have not ended" in said
    assert "nonexistent" in said
    assert [run.record.ended for run in group.runs()].count("finished") == 2
    assert Run.read(first.paths.root).record.state == "planned"


def test_cancel_ends_an_attached_local_command_and_lasts_until_resume(
    start: Start, mlebench: Mlebench, planned: Callable[..., Group], tmp_path: Path
) -> None:
    group = planned(3, f"{SUBMIT}; until [ -e {tmp_path}/end ]; do sleep 0.1; done", workers=2)
    runner = start("run", "--resume", str(group.paths.root), stderr=subprocess.PIPE)
    wait_until(lambda: len(_logs(group)) == 2, "two agents run", process=runner)
    said = mlebench("runs", "cancel", str(group.paths.root)).stderr
    assert f"mlebench run --resume {group.paths.root}" in said
    _, errors = runner.communicate(timeout=120)
    assert runner.returncode == 130
    assert "Somebody has cancelled this group" in errors
    assert {run.state for run in group.runs()} == {"planned"}
    assert "The group was cancelled" in mlebench("runs", "list", str(group.paths.root)).stderr
    folder = next(iter(group.runs())).paths.root
    mlebench("run", "exec", str(folder), code=75)
    (tmp_path / "end").touch()
    mlebench("run", "--resume", str(group.paths.root))
    assert [run.record.ended for run in group.runs()] == ["finished"] * 3


def test_a_run_exec_that_nobody_watches_ends_when_its_group_is_cancelled(
    start: Start, mlebench: Mlebench, planned: Callable[..., Group]
) -> None:
    """As under a scheduler that has forgotten the job."""
    group = planned(1, f"{SUBMIT}; sleep 600")
    (run,) = group.runs()
    worker = start("run", "exec", str(run.paths.root))
    wait_until(lambda: _logs(group), "the agent runs", process=worker)
    mlebench("runs", "cancel", str(group.paths.root))
    assert worker.wait(120) == 75
    assert [attempt.ended for attempt in Run.read(run.paths.root).record.attempts] == ["cancelled"]


def test_runs_whose_process_was_killed_here_are_not_listed_as_running(
    start: Start, mlebench: Mlebench, planned: Callable[..., Group]
) -> None:
    group = planned(1, f"{SUBMIT}; sleep 600")
    (run,) = group.runs()
    worker = start("run", "exec", str(run.paths.root))
    wait_until(lambda: _logs(group), "the agent runs", process=worker)
    assert counts(group)["running"] == 1
    worker.kill()
    worker.wait()
    assert Run.read(run.paths.root).record.state == "running", "nobody could write it"
    assert counts(group)["running"] == 0
    assert "planned" in mlebench("runs", "list", str(group.paths.root)).stdout
    assert json.loads(mlebench("runs", "list", str(group.paths.root), "--json").stdout)[0]["state"] == "planned"


def _hold_elsewhere(folder: Path, patch: pytest.MonkeyPatch) -> Lease:
    """A lease that a process on another host holds."""
    here = Process.current()
    with patch.context() as patched:
        patched.setattr(Process, "current", classmethod(lambda cls: replace(here, host="elsewhere")))
        lease = acquire(folder)
    assert lease
    return lease


def test_a_worker_does_other_runs_while_one_is_held(
    start: Start, planned: Callable[..., Group], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = planned()
    first, *others = group.runs()
    lease = _hold_elsewhere(first.paths.leases, monkeypatch)
    runner = start("run", "--resume", str(group.paths.root), "--workers", "1")
    done = lambda: all(Run.read(run.paths.root).record.is_final for run in others)  # noqa: E731
    wait_until(done, "the other runs are done", EXPIRY * 2, process=runner)
    assert not first.paths.runner_log.exists(), "a worker waited for the held run"
    lease.release()
    assert runner.wait(120) == 0


def test_an_observer_sees_a_lease_expire_without_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, folder = [0.0], tmp_path / "leases"
    observer = Observer(lambda: now[0])
    assert not observer.is_held(folder), "there is none"
    lease = _hold_elsewhere(folder, monkeypatch)
    assert observer.is_held(folder)
    now[0] += EXPIRY * 2
    lease.renew()
    assert observer.is_held(folder), "its counter has moved"
    now[0] += EXPIRY - 1
    assert observer.is_held(folder)
    now[0] += 1
    assert not observer.is_held(folder)
    with pytest.raises(leases.LeaseLostError):
        lease.require()
    assert acquire(folder, wait=False), "nobody has to wait any more"


def test_a_record_that_a_disk_shows_cut_short_is_read_again(
    planned: Callable[..., Group], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As sshfs with its default cache does once after the file was replaced by a longer one."""
    group = planned()
    run = next(iter(group.runs()))
    cut = {run.paths.record, group.paths.record}
    whole = base.content_of

    def read(path: Path) -> bytes:
        content = whole(path)
        return content[: cut.discard(path) or len(content) // 2] if path in cut else content

    monkeypatch.setattr(base, "content_of", read)
    assert Group.read(group.paths.root).record.id == group.record.id
    assert Run.read(run.paths.root).record == run.record
    assert not cut
    run.paths.record.write_text('{"schema": 1,')
    with pytest.raises(PrerequisiteError, match="is not JSON"):
        Run.read(run.paths.root)


def test_what_ended_a_run_is_in_slurms_log(
    start: Start, planned: Callable[..., Group], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm writes such a line, here in the words of Slurm 22.05, before it signals the job."""
    log = tmp_path / "1.log"
    line = "slurmstepd-n1: error: *** JOB {} ON n1 CANCELLED AT 2026-11-18T04:22:49{} ***\n"
    monkeypatch.setenv(hosts.JOB_LOG_VARIABLE, str(log))
    monkeypatch.setenv(hosts.JOB_VARIABLE, "21")
    assert hosts.scheduler_reason() is None, "there is no log"
    log.write_text(line.format(22, " DUE TO TIME LIMIT"))
    assert hosts.scheduler_reason() is None, "it is of another job"
    log.write_text(line.format(21, " DUE TO PREEMPTION"))
    assert hosts.scheduler_reason() == "Slurm ended it: preemption"
    log.write_text(line.format(21, " DUE TO PREEMPTION") + line.format(21, ""))
    assert hosts.scheduler_reason() is None, "it was requeued, and cancelled later"
    log.unlink()

    group = planned(1, f"{SUBMIT}; sleep 600")
    (run,) = group.runs()
    worker = start("run", "exec", str(run.paths.root))
    wait_until(lambda: _logs(group), "the agent runs", process=worker)
    log.write_text(line.format(21, " DUE TO TIME LIMIT"))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(120) == 75
    (attempt,) = Run.read(run.paths.root).record.attempts
    assert attempt.ended == "cancelled"
    assert str(attempt.detail).startswith("Slurm's time limit ended it")
