"""A process may end between any two steps on the disk: its successor brings the run to one final state.

In place of a real kill, the k-th change to the file system fails and so does every later one, for all k. What would
clean up in a living process does nothing then, as after `kill -9`.
"""

import errno
import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.groups import plan_group
from support.records import TIME, write_record

from mlebench.core import leases
from mlebench.core.errors import SandboxError
from mlebench.core.files import is_temporary
from mlebench.core.outcomes import RETRIES
from mlebench.core.paths import RunPaths
from mlebench.core.processes import Process
from mlebench.data.open_runs import open_runs
from mlebench.records import now, read
from mlebench.records.run import Attempt, RunConditions, RunRecord
from mlebench.records.run_groups import Group, Run
from mlebench.records.snapshots import SnapshotScores
from mlebench.registry import Competition
from mlebench.run import execute as execution
from mlebench.run import group_operations as groups
from mlebench.run import recorder, regrade
from mlebench.run.execute import abandon, execute
from mlebench.run.publish import collect_outputs, finalize, publish_result, stage
from mlebench.run.retry_rules import FINAL, LOST_STARTS, MAY_BE_RETRIED
from mlebench.run.snapshots import Snapshots

DEAD = (1 << 22) + 1  # no process has this id
CHANGES = ("rename", "replace", "unlink", "remove", "rmdir", "mkdir", "link")


class KilledError(BaseException):
    """Stands for `kill -9`."""


class Steps:
    """Counts changes to the file system; from number `last` on, none is made."""

    def __init__(self, last: int):
        self.left = last
        self.made: list[str] = []

    def __call__(self, act: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        if self.left <= 0:
            raise KilledError(self.made[-3:])
        self.left -= 1
        self.made.append(f"{act.__name__} {arguments[0]}")
        return act(*arguments, **options)


@contextmanager
def killed_after(count: int) -> Iterator[Steps]:
    """Acts as a process that is killed after this many steps; it seems dead to its successors."""
    steps = Steps(count)
    with pytest.MonkeyPatch.context() as patch:
        here = Process.current()
        patch.setattr(Process, "current", classmethod(lambda cls: replace(here, pid=DEAD)))
        patch.setattr(os, "getpid", lambda: DEAD)  # temporary files are named after it
        for name in CHANGES:
            act = getattr(os, name)
            patch.setattr(os, name, lambda *words, _act=act, **options: steps(_act, *words, **options))
        opened = io.open

        def open_file(file: Any, mode: str = "r", *words: Any, **options: Any) -> Any:
            if not set(mode) & set("wax+") or file == os.devnull:
                return opened(file, mode, *words, **options)
            stream = steps(opened, file, mode, *words, **options)
            if is_temporary(os.path.basename(file)):  # noqa: PTH119 it may be a path or a text
                stream.write = lambda text, write=stream.write: _write_in_two_steps(write, text, steps)
            return stream

        patch.setattr(io, "open", open_file)
        yield steps


def _write_in_two_steps(write: Callable[[str], int], text: str, steps: Steps) -> int:
    half = len(text) // 2
    return write(text[:half]) + steps(write, text[half:])


@pytest.fixture
def planned(titanic: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Run]:
    """A planned run of the oracle, which needs no sandbox, in its own group."""
    shutil.rmtree(titanic.paths.runs_open, ignore_errors=True)  # marks of runs that other tests have killed

    def new() -> Run:
        (run,) = plan_group(titanic, tmp_path / "runs", agent="oracle").runs()
        return run

    return new


def _killed_at_every_step(make: Callable[[], Run], act: Callable[[Run], Any]) -> Iterator[tuple[Run, list[str]]]:
    """The run after each kill, until `act` gets through unharmed."""
    for count in range(1000):
        run = make()
        with killed_after(count) as steps, suppress(KilledError):
            act(run)
            assert count > 5, "nothing was done"
            return
        yield run, steps.made
    raise AssertionError("it never ends")


def _remains(run: Run) -> list[Path]:
    """Half-written files, except of leases: the next holder removes those."""
    temporaries = (path for path in run.paths.root.rglob("*") if is_temporary(path.name))
    return [path for path in temporaries if path.parent != run.paths.leases]


def _check(folder: Path, ended: str = "finished") -> Run:
    run = Run.read(folder)
    assert (run.record.state, run.record.ended) == ("ended", ended)
    assert [attempt.number for attempt in run.record.attempts] == list(range(1, len(run.record.attempts) + 1))
    assert not any(attempt.is_open for attempt in run.record.attempts)
    assert run.record == read(run.paths.result / "record.json", RunRecord)
    assert [path.name for path in run.paths.result.iterdir()] == ["record.json"]
    assert not list(folder.glob("result.*"))
    lease = leases.acquire(run.paths.leases, wait=False)
    assert lease is not None, "nobody can do it again"
    lease.release()
    assert not (folder.parent / ".work").exists()
    assert not list(Path(str(Group.read(folder.parent).record.data_dir)).glob("*/runs-open/*"))
    if ended == "finished":
        assert run.record.report is not None
        assert run.record.report.gold_medal
        assert run.paths.submission.is_file()
    return run


def test_a_run_is_killed_at_every_step(planned: Callable[[], Run], titanic: Competition) -> None:
    seen = set()
    for run, made in _killed_at_every_step(planned, lambda run: execute(run.paths.root)):
        before = Run.read(run.paths.root).record
        published = run.paths.result.exists()
        assert open_runs(titanic) == [], made
        assert execute(run.paths.root) == FINAL, made
        after = _check(run.paths.root)
        assert len(after.record.attempts) == len(before.attempts) + (not published), made
        assert _remains(after) == [], made
        if published:  # what was published counts; it is not done again
            assert after.record.attempts[-1].token == before.attempts[-1].token
        for attempt in after.record.attempts[:-1]:
            assert attempt.ended == "cancelled"
        seen.add((before.state, published))
    assert seen == {("planned", False), ("running", False), ("running", True), ("ended", True)}


def test_a_second_kill_at_every_step_of_resuming(planned: Callable[[], Run]) -> None:
    """The first was killed with its result staged, when there is the most to lose."""

    def half_done() -> Run:
        run = planned()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(recorder, "publish_result", lambda *words, **options: (_ for _ in ()).throw(KilledError))
            patch.setattr(leases.Lease, "release", lambda self: None)
            with pytest.raises(KilledError):
                execute(run.paths.root)
        lease = next(run.paths.leases.glob("*.json"))
        lease.write_text(lease.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {DEAD}'))
        staged = next(run.paths.root.glob("result.*"))
        (staged / "run.log").write_text("what the agent printed")
        return run

    for run, made in _killed_at_every_step(half_done, lambda run: execute(run.paths.root)):
        assert execute(run.paths.root) == FINAL, made
        after = _check(run.paths.root)
        assert _remains(after) == [], made
        assert (after.paths.attempt(1) / "run.log").read_text() == "what the agent printed", made
        assert (after.paths.attempt(1) / "submission" / "submission.csv").is_file(), made


def test_a_retry_is_killed_at_every_step(planned: Callable[[], Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RETRIES, "failed", ("finished",))  # the oracle does not fail

    def ended() -> Run:
        run = planned()
        assert execute(run.paths.root) == FINAL
        assert groups.finish(Group.read(run.paths.group.root))
        return Run.read(run.paths.root)

    seen = set()
    for run, made in _killed_at_every_step(
        ended, lambda run: groups.retry_runs(Group.read(run.paths.group.root), ["failed"])
    ):
        before = Run.read(run.paths.root).record
        assert execute(run.paths.root) == FINAL, made
        after = _check(run.paths.root)
        done_again = before.state == "planned"
        assert not done_again or _remains(after) == []
        assert after.record.rerolls == done_again
        assert len(after.record.attempts) == 1 + done_again
        assert (after.paths.attempt(1) / "submission" / "submission.csv").is_file() == done_again, made
        assert not done_again or groups.finished_report(Group.read(run.paths.group.root), [after]) is None, made
        seen.add(done_again)
    assert seen == {True, False}


@pytest.mark.parametrize("crash", [pytest.param(False, marks=pytest.mark.full), True])
def test_giving_up_is_killed_at_every_step(
    planned: Callable[[], Run], monkeypatch: pytest.MonkeyPatch, crash: bool
) -> None:
    """After infrastructure failures, or crashes of this program, a run ends exactly once."""

    def fails(attempt: Any, *_: object) -> None:
        attempt._recorder.note_start(None, RunConditions())
        raise SandboxError("the disk is on fire")

    monkeypatch.setattr(execution._Attempt, "_host_only", fails)

    def give_up(run: Run) -> None:
        if crash:
            abandon(run.paths.root, "mlebench failed")
        else:
            execute(run.paths.root)

    def nearly() -> Run:
        run = planned()
        for _ in range(LOST_STARTS - 1):
            assert execute(run.paths.root) == MAY_BE_RETRIED
        return run

    for run, made in _killed_at_every_step(nearly, give_up):
        give_up(run)
        if Run.read(run.paths.root).record.state == "planned":  # the attempt that was killed does not count
            give_up(run)
        after = _check(run.paths.root, "infra_error")
        assert _remains(after) == [], made
        failures = [attempt for attempt in after.record.attempts if _is_failure(attempt)]
        # If the last failure was recorded but not that the run is given up, it is tried once more.
        assert len(failures) - (LOST_STARTS - crash) in (0, 1), made


def _is_failure(attempt: Attempt) -> bool:
    """Whether an attempt counts: the infrastructure failed, or the runner was lost after the agent had started."""
    return attempt.ended == "infra_error" or (attempt.interrupted_by == "lost" and attempt.agent_started_at is not None)


def test_the_report_of_a_group_is_killed_at_every_step(planned: Callable[[], Run]) -> None:
    def ended() -> Run:
        run = planned()
        execute(run.paths.root)
        groups.finish(Group.read(run.paths.group.root))
        return run

    for run, made in _killed_at_every_step(ended, lambda run: groups.finish(Group.read(run.paths.group.root))):
        path = groups.finish(Group.read(run.paths.group.root))
        group = Group.read(run.paths.group.root)
        assert [path] == list(group.paths.root.glob("*_grading_report.json")), made
        assert path is not None
        assert group.record.report == path.name
        assert not [path for path in group.paths.root.iterdir() if is_temporary(path.name)], made


def test_grading_again_is_killed_at_every_step(planned: Callable[[], Run]) -> None:
    """So is grading snapshots, which writes beside them; only what holds the lease writes there."""

    def record(run: Run) -> None:
        with regrade.held_for_grading(run):
            scores = {"run_id": run.record.run_id, "competition": "c", "graded_at": TIME, "points": []}
            write_record(run.paths.over_time, SnapshotScores, **scores)
            run.write(report=run.record.report)

    def ended() -> Run:
        run = planned()
        execute(run.paths.root)
        run.paths.snapshots.mkdir()
        return Run.read(run.paths.root)

    for run, made in _killed_at_every_step(ended, record):
        record(Run.read(run.paths.root))
        assert _remains(run) == [], made
        assert [path.name for path in run.paths.snapshots.iterdir()] == [run.paths.over_time.name], made


def test_a_snapshot_that_was_cut_off_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    submission = work / "home" / "submission" / "submission.csv"
    submission.parent.mkdir(parents=True)
    submission.write_text("id\n1\n")
    task = SimpleNamespace(work=work, home=work / "home")
    Snapshots(cast("Any", task), now()).look()
    (kept,) = RunPaths(work).snapshots.iterdir()
    with monkeypatch.context() as patch:
        patch.setattr("mlebench.sandbox.collect._copy", _disk_is_full)
        Snapshots(cast("Any", task), now()).look()
        assert list(RunPaths(work).snapshots.iterdir()) == [kept]
    kept.with_name("0000000007.0.csv.part").touch()  # the runner was killed
    collect_outputs(work, tmp_path / "staged")
    assert [path.name for path in RunPaths(tmp_path / "staged").snapshots.iterdir()] == [kept.name]


def _disk_is_full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_of_two_results_the_first_counts(planned: Callable[[], Run], monkeypatch: pytest.MonkeyPatch) -> None:
    """A holder that was presumed dead publishes nothing; if it does so at that very moment, the other one does not."""
    run = planned()
    first = leases.acquire(run.paths.leases)
    monkeypatch.setattr(Process, "is_alive", False)
    second = leases.acquire(run.paths.leases)
    assert first
    assert second
    results = {"state": "ended", "ended": "finished", "ended_at": TIME}
    with pytest.raises(leases.LeaseLostError):
        publish_result(run, stage(run, first), first, detail="first", **results)
    assert not run.paths.result.exists()
    monkeypatch.setattr(first, "require", lambda: None)
    publish_result(run, stage(run, first), first, detail="first", **results)
    publish_result(run, stage(run, second), second, detail="second", **results)
    assert finalize(run).record.detail == "first"
    assert Run.read(run.paths.root).record.detail == "first"
    assert sorted(path.name for path in run.paths.root.iterdir()) == ["leases", "result", "run.json"]
