"""A disk that is full at the wrong moment loses nothing, blames nobody and gives no agent a second start."""

import errno
import io
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest
from support.groups import plan_group
from support.run_fixtures import SUBMIT, Mlebench, Start
from support.waiting import wait_until

from mlebench.agents.spec import COMMAND
from mlebench.bundles.make import make_bundle
from mlebench.cli.run import _say_unstored
from mlebench.core import leases, paths
from mlebench.core.errors import PrerequisiteError, StorageError
from mlebench.core.files import is_temporary, require_free_space
from mlebench.core.os_errors import UNLIMITED, DiskSpace, free_space
from mlebench.records import now
from mlebench.records.run import ResourceUse
from mlebench.records.run_groups import Group, Run, groups_in
from mlebench.registry import Competition
from mlebench.run import group_operations as groups
from mlebench.run import recorder
from mlebench.run.agent_watch import AgentWatch
from mlebench.run.execute import abandon, execute, unstored_result
from mlebench.run.full_disk import charged_for_uploads
from mlebench.run.publish import unstage
from mlebench.run.recorder import RunRecorder
from mlebench.run.retry_rules import FINAL, LOST_STARTS, MAY_BE_RETRIED, NOT_STORED
from mlebench.run.snapshots import Snapshots
from mlebench.run.validator_proxy import ValidatorProxy, _connect
from mlebench.sandbox import collect, session, supervisor
from mlebench.sandbox.session import SupervisorClient, TaskOutcome

PROGRAM = f"{SUBMIT}; echo hello; mkdir -p $LOGS_DIR/more; date >$LOGS_DIR/more/when"
ALLOCATING = ("mkdir", "link", "write")


class KilledError(BaseException):
    """Stands for `kill -9`."""


@contextmanager
def full_after(count: int) -> Iterator[list[str]]:
    """From the step after this many on, the disk takes nothing new; what is there can be moved and removed."""
    steps: list[str] = []

    def step(name: str, act: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        steps.append(f"{name} {arguments[0]}")
        if len(steps) > count:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(arguments[0]))
        return act(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        for name in ALLOCATING:
            patch.setattr(os, name, partial(step, name, getattr(os, name)))
        opened = io.open

        def open_file(file: Any, mode: str = "r", *words: Any, **options: Any) -> Any:
            if not set(mode) & set("wax") or file == os.devnull:
                return opened(file, mode, *words, **options)
            stream = step("open", opened, file, mode, *words, **options)
            write = stream.write
            stream.write = lambda data: step("write", lambda _, text: write(text), file, data)
            return stream

        patch.setattr(io, "open", open_file)
        yield steps


def _plan(agent: str | None, command: str | None, competition: Competition, runs_dir: Path) -> Run:
    (run,) = plan_group(competition, runs_dir, agent=agent, agent_command=command).runs()
    return run


@pytest.fixture
def ended_agent(titanic: Competition, tmp_path: Path) -> Run:
    """A run whose agent has ended, and whose runner was killed before it could store the result."""
    run = _plan(COMMAND, PROGRAM, titanic, tmp_path / "runs")
    _kill_before_publishing(run.paths.root)
    return run


def _kill_before_publishing(folder: Path) -> int | None:
    """Execute a run as a process that is killed once the agent has ended; its exit code, unless it was."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunRecorder, "publish", lambda *_: (_ for _ in ()).throw(KilledError))
        try:
            return execute(folder)
        except KilledError:
            return None


def _forget_the_end(folder: Path) -> None:
    """As if the agent had been killed as well."""
    work = unstored_result(Run.read(folder))
    assert work
    paths.outcome(work).unlink()


def test_the_disk_is_full_from_any_write_on_after_the_agent_has_ended(ended_agent: Run, tmp_path: Path) -> None:
    stored_at = []
    for count in range(200):
        root = tmp_path / str(count)
        shutil.copytree(ended_agent.paths.group.root, root, symlinks=True)
        folder = root / ended_agent.paths.root.name
        with full_after(count) as steps:
            code = execute(folder)
        if code == NOT_STORED:
            run = Run.read(folder)
            assert not run.record.is_final, steps[-1]
            if not run.paths.result.exists():
                assert (work := unstored_result(run)), steps[-1]
                assert (work / "home" / "submission" / "submission.csv").is_file(), steps[-1]
        assert execute(folder) == FINAL, steps[-1]
        _check(folder)
        shutil.rmtree(root)
        if code == FINAL and len(steps) <= count:
            break
        stored_at.append(code)
    assert stored_at.count(NOT_STORED) > 10
    assert len(stored_at) < 199


def test_the_disk_is_full_from_any_write_on(titanic: Competition, tmp_path: Path) -> None:
    """From planning to the end; the agent is one that needs no sandbox."""
    codes = []
    for count in range(200):
        runs = tmp_path / str(count)
        with suppress(OSError, PrerequisiteError), full_after(count) as steps:
            run = _plan("oracle", None, titanic, runs)
            codes.append(execute(run.paths.root))
        if codes and codes[-1] == FINAL and len(steps) <= count:
            break
        for group in groups_in(runs):
            for run in group.runs():
                assert execute(run.paths.root) == FINAL, steps[-1]
                assert Run.read(run.paths.root).record.ended == "finished", steps[-1]
        shutil.rmtree(runs, ignore_errors=True)
    assert codes.count(NOT_STORED) > 10
    assert codes[-1] == FINAL


def _check(folder: Path, attempts: Sequence[str] = ("finished",)) -> None:
    run = Run.read(folder)
    assert (run.record.state, run.record.ended, run.record.starts) == ("ended", "finished", 1)
    assert [attempt.ended for attempt in run.record.attempts] == list(attempts)
    assert run.record.report is not None
    assert run.record.report.status == "graded"
    assert run.paths.submission.stat().st_size > 0
    assert run.paths.log.read_text() == "hello\n"
    assert (run.paths.logs / "more" / "when").stat().st_size > 0
    assert list(run.paths.snapshots.glob("*.csv"))
    assert not (folder.parent / ".work").exists()
    assert not [path for path in folder.rglob("*") if is_temporary(path.name) and path.parent != run.paths.leases]
    assert not list(folder.glob("result.*"))


def test_an_ended_agents_work_is_not_abandoned(ended_agent: Run) -> None:
    """Not even if mlebench itself crashes again and again while it stores or grades it."""
    assert not abandon(ended_agent.paths.root, "mlebench failed")
    assert execute(ended_agent.paths.root) == FINAL
    _check(ended_agent.paths.root)


def test_data_that_is_gone_when_an_agent_has_ended_gives_it_no_second_start(
    ended_agent: Run, titanic: Competition
) -> None:
    hidden = titanic.private_dir.rename(titanic.private_dir.with_name("hidden"))
    try:
        assert execute(ended_agent.paths.root) == NOT_STORED
    finally:
        hidden.rename(titanic.private_dir)
    assert execute(ended_agent.paths.root) == FINAL
    _check(ended_agent.paths.root)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_a_full_disk_leaves_no_half_of_a_report_or_a_bundle(ended_agent: Run, tmp_path: Path, count: int) -> None:
    assert execute(ended_agent.paths.root) == FINAL
    group = Group.read(ended_agent.paths.group.root)
    target = tmp_path / "bundle.tar.gz"
    for act in (lambda: make_bundle(group, target), lambda: groups.finish(group)):
        with pytest.raises((OSError, PrerequisiteError), match=r"No space|the disk is full"), full_after(count):
            act()
    assert groups.finish(Group.read(group.paths.root)) is not None
    make_bundle(Group.read(group.paths.root), target)
    everything = [*tmp_path.iterdir(), *group.paths.root.iterdir()]
    assert not [path for path in everything if is_temporary(path.name)]


@pytest.mark.parametrize(("count", "is_cancelled"), [(0, False), (1, True)])
def test_a_group_on_a_full_disk_is_cancelled_or_the_command_says_that_it_is_not(
    ended_agent: Run, monkeypatch: pytest.MonkeyPatch, count: int, is_cancelled: bool
) -> None:
    """A disk that takes no content may still take an empty file."""
    group = Group.read(ended_agent.paths.group.root)
    if not is_cancelled:
        monkeypatch.setattr(Path, "touch", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with full_after(count):
        if is_cancelled:
            groups.cancel(group)
        else:
            with pytest.raises(PrerequisiteError, match=r"the group is not cancelled: .* the disk is full"):
                groups.cancel(group)
    assert group.paths.cancelled.exists() == is_cancelled


def test_a_disk_without_space_starts_no_agent(ended_agent: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(ended_agent.paths.group.root / ".work")  # as if the agent had been killed, too
    with monkeypatch.context() as patch:
        patch.setattr("mlebench.core.files.free_space", lambda _: DiskSpace(0, UNLIMITED))
        with pytest.raises(StorageError, match="free some space"):
            require_free_space(ended_agent.paths.root, None)
        assert execute(ended_agent.paths.root) == NOT_STORED
    assert Run.read(ended_agent.paths.root).record.starts == 1
    assert execute(ended_agent.paths.root) == FINAL
    assert Run.read(ended_agent.paths.root).record.starts == 2


def test_a_lease_is_renewed_on_a_full_disk(tmp_path: Path) -> None:
    """Otherwise an agent that fills the disk would get another attempt."""
    now = 0.0
    lease = leases.acquire(tmp_path / "leases", clock=lambda: now)
    assert lease
    with full_after(0):
        for _ in range(30):
            now += leases.RENEWAL
            lease.renew()
    lease.require()
    assert leases.acquire(tmp_path / "leases", wait=False) is None
    lease.release()


def test_copying_a_large_submission_does_not_silence_the_runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy takes as long as the runner needs for several heartbeats: a supervisor ends the run without these."""
    task = cast("Any", SimpleNamespace(work=tmp_path, home=tmp_path / "home"))
    submission = tmp_path / "home" / "submission" / "submission.csv"
    submission.parent.mkdir(parents=True)
    submission.write_text("id\n1\n")
    copying, beats = threading.Event(), threading.Semaphore(0)
    copy = collect._copy

    def slow_copy(*arguments: Any) -> None:
        copying.set()
        for _ in range(3):
            assert beats.acquire(timeout=120), "the runner waits for the copy"
        copy(*arguments)

    class FakeSession:
        pid = 0

        def poll(self) -> str | None:
            return "ended" if list((tmp_path / "snapshots").glob("*.csv")) else None

        def heartbeat(self) -> None:
            if copying.is_set():
                beats.release()

        def descriptor(self) -> int:
            return silent

        def stop(self) -> None:
            raise AssertionError("the run was stopped")

    monkeypatch.setattr(collect, "_copy", slow_copy)
    silent, other = os.pipe()
    lease = leases.acquire(tmp_path / "leases")
    proxy = SimpleNamespace(heartbeat=lambda: None)
    monkeypatch.setattr(AgentWatch, "_heed_signals", lambda *_: None)
    watch = AgentWatch(cast("Any", None), cast("Any", None), cast("Any", lease))
    assert watch.wait(cast("Any", FakeSession()), cast("Any", proxy), None, Snapshots(task, now()))
    for descriptor in (silent, other):
        os.close(descriptor)


def test_snapshots_leave_room_for_the_submission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for the snapshot, once when the submission is collected, and the floor besides."""
    task = cast("Any", SimpleNamespace(work=tmp_path, home=tmp_path / "home"))
    submission = tmp_path / "home" / "submission" / "submission.csv"
    submission.parent.mkdir(parents=True)
    submission.write_bytes(bytes(1000))
    snapshots = Snapshots(task, now())
    monkeypatch.setattr("mlebench.run.snapshots.free_space_floor", lambda _: DiskSpace(5000, 10))
    for free in (DiskSpace(6999, 1000), DiskSpace(1 << 40, 9)):
        monkeypatch.setattr("mlebench.run.snapshots.free_space", lambda _, free=free: free)
        snapshots.look()
        assert not (tmp_path / "snapshots").exists()
    monkeypatch.setattr("mlebench.run.snapshots.free_space", lambda _: DiskSpace(7000, 10))
    snapshots.look()
    assert [path.stat().st_size for path in (tmp_path / "snapshots").iterdir()] == [1000]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 60 MB and 2,000 files."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m,nr_inodes=2000", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _fill(disk: Path, leave: int = 0) -> None:
    with suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
        while free_space(disk).bytes > leave:
            filler.write(b"1" * (1 << 16))


def _fill_with_files(disk: Path, leave: int) -> None:
    (disk / "filler").mkdir()
    for number in range(free_space(disk).files - leave):
        (disk / "filler" / str(number)).touch()


@pytest.mark.parametrize("lack", ["MiB", "inodes"])
def test_no_agent_is_started_on_a_disk_that_others_have_filled(
    titanic: Competition, small_disk: Path, lack: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It would be blamed for what it then writes itself."""
    run = _plan(COMMAND, SUBMIT, titanic, small_disk)
    if lack == "MiB":
        _fill(small_disk, leave=20 << 20)
    else:
        _fill_with_files(small_disk, leave=500)
    assert execute(run.paths.root) == NOT_STORED
    assert f"{lack} are free" in caplog.text
    assert Run.read(run.paths.root).record.attempts == []
    subprocess.run(["rm", "-r", str(small_disk / "filler")], check=True)
    assert execute(run.paths.root) == FINAL
    assert (Run.read(run.paths.root).record.ended, Run.read(run.paths.root).record.starts) == ("finished", 1)


@pytest.mark.parametrize("kind", ["bytes", "files", "both", "log", "folders of code"])
def test_what_filled_the_disk_makes_room_for_its_own_result(titanic: Competition, small_disk: Path, kind: str) -> None:
    """What is never stored goes first, and the rest needs no space twice, or nothing could be stored until somebody
    has removed it.
    """
    files = "mkdir x; cd x; for i in {1..3000}; do : > file-$i || break; done"
    content = "cat /dev/zero > $TMPDIR/content"
    fill = {
        "bytes": content,
        "files": files,
        "both": f"{content}; {files}",
        "log": "cat /dev/zero > $LOGS_DIR/x",
        "folders of code": "cd $CODE_DIR; for i in {1..3000}; do mkdir folder-$i || break; done",
    }[kind]
    run = _plan(COMMAND, f"{SUBMIT}; cd $HOME; {fill}; exit 3", titanic, small_disk)
    group = json.loads(run.paths.group.record.read_text())
    limits = group["limits"] | {"disk": 100 << 20, "inodes": 3900}  # as if it had been planned on a larger disk
    run.paths.group.record.write_text(json.dumps(group | {"limits": limits}))
    assert execute(run.paths.root) == FINAL
    record = Run.read(run.paths.root).record
    assert (record.ended, record.conditions.used.disk_filled_by) == ("over_disk", "this run")
    assert record.report is not None
    assert record.report.status == "graded"
    left_out = {file.reason for file in record.conditions.collected.left_out}
    assert left_out == ({"the disk is full"} if kind == "folders of code" else set())
    assert not (run.paths.group.root / ".work").exists()


def test_a_result_that_leaves_no_room_for_a_copy_is_stored(titanic: Competition, small_disk: Path) -> None:
    """The agent kept to its limits, and may use more than half of the disk."""
    run = _plan(COMMAND, f"{SUBMIT}; head -c 35M /dev/zero > $CODE_DIR/x", titanic, small_disk)
    assert execute(run.paths.root) == FINAL
    assert (Run.read(run.paths.root).record.ended, (run.paths.code / "x").stat().st_size) == ("finished", 35 << 20)


@pytest.mark.parametrize(
    ("then", "full", "detail"),
    [
        ("exit 1", False, "exit code 1 on a disk that others had filled"),
        ("exit 1", True, "exit code 1 on a disk that others had filled"),
        ("echo > $SUBMISSION_DIR/submission.csv", True, "no valid submission, on a disk that others had filled"),
    ],
)
def test_an_agent_that_fails_on_a_disk_that_others_fill_may_try_again(
    start: Start, titanic: Competition, small_disk: Path, then: str, full: bool, detail: str
) -> None:
    """Whether or not there was room to keep what the failed attempt left."""
    program = f"{SUBMIT}; touch $HOME/ready; while [ -e $HOME/ready ]; do sleep 0.1; done"
    program += f"; [ -e {small_disk}/mended ] || {then}"
    options = ["--agent-command", program, "-c", titanic.id, "--runs-dir", str(small_disk), "--sandbox", "process"]
    runner = start("run", *options, stderr=subprocess.PIPE)
    (ready,) = wait_until(
        lambda: list(small_disk.glob("*/.work/*/home/ready")), "the agent has submitted", process=runner
    )
    _fill(small_disk, leave=0 if full else 400_000)
    ready.unlink()
    _, message = runner.communicate(timeout=240)
    assert runner.returncode == 1, message
    (small_disk / "filler").unlink()
    (small_disk / "mended").touch()
    (group,) = (Group.read(path.parent) for path in small_disk.glob("*/group.json"))
    resumed = start("run", "--resume", str(group.paths.root), stderr=subprocess.PIPE)

    def has_ended() -> bool:
        for file in small_disk.glob("*/.work/*/home/ready"):
            file.unlink(missing_ok=True)
        return resumed.poll() is not None

    wait_until(has_ended, "the run has ended")
    assert resumed.returncode == 0
    (run,) = Group.read(group.paths.root).runs()
    assert (run.record.ended, run.record.starts, run.record.rerolls) == ("finished", 2, 0)
    assert run.record.attempts[0].ended == "infra_error"
    assert detail in str(run.record.attempts[0].detail)


def test_uploads_to_the_validator_give_no_second_start(
    titanic: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not in the agent's folders, and would count as those of others if they filled the disk."""
    run = _plan(COMMAND, f"{SUBMIT}; exit 3", titanic, tmp_path / "runs")
    watch = AgentWatch.wait

    def fail_on_a_full_disk(*arguments: Any) -> TaskOutcome:
        outcome = watch(*arguments)
        return replace(outcome, ended="infra_error", used=ResourceUse(disk_filled_by="others"))

    monkeypatch.setattr(AgentWatch, "wait", fail_on_a_full_disk)
    monkeypatch.setattr(ValidatorProxy, "has_filled_disk", True)
    assert execute(run.paths.root) == FINAL
    record = Run.read(run.paths.root).record
    assert (record.ended, record.starts, record.report and record.report.status) == ("over_disk", 1, "graded")


def test_an_agent_whose_uploads_filled_the_disk_is_over_it() -> None:
    used = ResourceUse(disk_filled_by="others")
    failed = TaskOutcome("infra_error", "exit code 3 on a disk that others had filled", 3, 1.0, used)
    charged = charged_for_uploads(failed)
    assert (charged.ended, charged.used.disk_filled_by) == ("over_disk", "this run")
    finished = charged_for_uploads(replace(failed, ended="finished", exit_code=0))
    assert (finished.ended, finished.used.disk_filled_by) == ("finished", "this run")
    died = replace(failed, exit_code=None, detail="the supervisor died")
    assert charged_for_uploads(died).ended == "infra_error"


def test_a_validator_whose_uploads_take_too_much_is_ended_and_remembered(titanic: Competition) -> None:
    head = b"POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=B\r\n"
    head += b"content-length: 99999999\r\n\r\n--B\r\n"
    head += b"content-disposition: form-data; name=file; filename=a.csv\r\n\r\n"
    token = uuid4().hex
    with ValidatorProxy(token, titanic, titanic.public_dir, disk=40 << 20) as proxy, ExitStack() as stack:
        for _ in range(3):
            upload = stack.enter_context(socket.socket(socket.AF_UNIX))
            upload.connect(str(proxy.socket))
            with suppress(OSError):  # it was ended meanwhile
                upload.sendall(head + b"1,2\n" * 2_000_000)  # of the 10 MB that it may take

        def has_filled_disk() -> bool:
            proxy.heartbeat()
            return proxy.has_filled_disk

        wait_until(has_filled_disk, "the validator has been ended")


def test_a_validator_that_does_not_listen_yet_leaves_no_open_socket() -> None:
    """An open one is a warning when it is collected, and fails the test."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        path = Path(folder, "v.sock")
        server.bind(str(path))
        with pytest.raises(ConnectionRefusedError):
            _connect(path)


def test_a_disk_that_fills_up_during_a_run_loses_no_submission(
    start: Start, mlebench: Mlebench, titanic: Competition, small_disk: Path
) -> None:
    program = f"{SUBMIT}; touch $HOME/ready; while [ -e $HOME/ready ]; do sleep 0.1; done"
    options = ["--agent-command", program, "-c", titanic.id, "--runs-dir", str(small_disk), "--sandbox", "process"]
    runner = start("run", *options, stderr=subprocess.PIPE)
    (ready,) = wait_until(
        lambda: list(small_disk.glob("*/.work/*/home/ready")), "the agent has submitted", process=runner
    )
    _fill(small_disk)
    ready.unlink()
    _, message = runner.communicate(timeout=240)
    assert runner.returncode == 1, message
    (group,) = (Group.read(path.parent) for path in small_disk.glob("*/group.json"))
    (run,) = group.runs()
    assert not run.record.is_final
    assert str(unstored_result(run)) in message

    (small_disk / "filler").unlink()
    mlebench("run", "--resume", str(group.paths.root))
    (run,) = Group.read(group.paths.root).runs()
    assert (run.record.ended, run.record.starts, len(run.record.attempts)) == ("finished", 1, 1)
    assert run.record.report is not None
    assert run.record.report.status == "graded"


def test_a_result_that_another_process_may_be_storing_is_not_called_unstored(
    ended_agent: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run.read(ended_agent.paths.root)
    lease = leases.acquire(run.paths.leases)
    assert lease is not None
    _say_unstored([run])
    assert capsys.readouterr().err == ""
    lease.release()
    _say_unstored([run])
    assert str(unstored_result(run)) in capsys.readouterr().err


def test_an_agent_whose_runner_is_killed_again_and_again_is_started_three_times(ended_agent: Run) -> None:
    folder = ended_agent.paths.root
    for _ in range(LOST_STARTS - 1):
        _forget_the_end(folder)
        assert _kill_before_publishing(folder) is None
    _forget_the_end(folder)
    assert _kill_before_publishing(folder) == FINAL
    run = Run.read(folder)
    assert (run.record.state, run.record.ended, run.record.starts) == ("ended", "infra_error", 3)
    assert {attempt.interrupted_by for attempt in run.record.attempts} == {"lost"}
    assert groups.retry_runs(Group.read(folder.parent), ["infra"]) == 1
    assert execute(folder) == FINAL
    assert (Run.read(folder).record.ended, Run.read(folder).record.starts) == ("finished", LOST_STARTS + 1)


def test_a_scheduler_may_interrupt_a_run_as_often_as_it_must(ended_agent: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that was requeued has another number; that another host took over is the scheduler's doing, too."""
    folder = ended_agent.paths.root
    for number in range(LOST_STARTS + 1):
        monkeypatch.setenv("SLURM_JOB_ID", str(number))
        _forget_the_end(folder)
        assert _kill_before_publishing(folder) is None
    assert execute(folder) == FINAL
    record = Run.read(folder).record
    assert (record.ended, record.starts) == ("finished", LOST_STARTS + 2)
    assert {attempt.interrupted_by for attempt in record.attempts[:-1]} == {"scheduler"}


def test_a_disk_without_hard_links_keeps_the_calls_to_the_model(
    ended_agent: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = unstored_result(Run.read(ended_agent.paths.root))
    assert work
    paths.model_calls(work).write_text("{}\n")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    assert execute(ended_agent.paths.root) == FINAL
    assert paths.model_calls(ended_agent.paths.logs).read_text() == "{}\n"


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]"])
def test_a_result_that_is_damaged_costs_nothing_else(ended_agent: Run, content: bytes | None) -> None:
    """The runner was killed just after it had published the result, and a failing disk has lost its record."""
    folder = ended_agent.paths.root
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunRecorder, "_finalize", lambda *_: (_ for _ in ()).throw(KilledError))
        with pytest.raises(KilledError):
            execute(folder)
    result = ended_agent.paths.result
    (result / "record.json").unlink()
    if content is not None:
        (result / "record.json").write_bytes(content)
    for _ in range(2):
        with suppress(PrerequisiteError):
            assert execute(folder) == NOT_STORED
    work = ended_agent.paths.group.work(Run.read(folder).record.attempts[0].token)
    assert (work / "home" / "submission" / "submission.csv").is_file()
    for part in ("run.log", "snapshots"):  # which no agent can write, and only one of both has
        assert (result / part).exists() or (work / part).exists()
    unstage(result, work)
    assert execute(folder) == FINAL
    _check(folder)


@pytest.mark.parametrize("fault", [errno.EMFILE, errno.ETIMEDOUT, errno.ENOMEM, errno.EIO])
@pytest.mark.parametrize("call", ["_copy", "_open"])
def test_a_fault_of_ours_while_collecting_is_not_taken_for_a_missing_or_empty_submission(
    ended_agent: Run, monkeypatch: pytest.MonkeyPatch, fault: int, call: str
) -> None:
    def fails(*_: object) -> None:
        raise OSError(fault, os.strerror(fault))

    with monkeypatch.context() as patch:
        patch.setattr(collect, call, fails)
        assert execute(ended_agent.paths.root) == NOT_STORED
    assert execute(ended_agent.paths.root) == FINAL
    _check(ended_agent.paths.root)


@pytest.mark.parametrize("fault", [errno.EMFILE, errno.EACCES, errno.EIO])
def test_a_recorded_end_that_cannot_be_read_now_starts_no_agent(
    ended_agent: Run, monkeypatch: pytest.MonkeyPatch, fault: int
) -> None:
    read = Path.read_bytes

    def fails(path: Path) -> bytes:
        if path.name == paths.outcome(path).name:
            raise OSError(fault, os.strerror(fault), str(path))
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fails)
        assert execute(ended_agent.paths.root) == NOT_STORED
        assert not abandon(ended_agent.paths.root, "mlebench failed")
    assert execute(ended_agent.paths.root) == FINAL
    _check(ended_agent.paths.root)


@pytest.mark.parametrize("damage", ["cut", "nonsense", "zeros", "another shape", "another end"])
def test_a_recorded_end_that_is_damaged_starts_no_agent(
    ended_agent: Run, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A supervisor writes it only when the agent has ended, so somebody has to say what is to become of the run."""
    folder = ended_agent.paths.root
    work = unstored_result(Run.read(folder))
    assert work
    content = paths.outcome(work).read_bytes()
    damaged = {
        "cut": content.rstrip()[:-1],
        "nonsense": b"\xff\xfe nonsense",
        "zeros": bytes(100),
        "another shape": b"[]",
        "another end": content.replace(b'"cause": null', b'"cause": "gone"'),
    }
    paths.outcome(work).write_bytes(damaged[damage])
    for _ in range(2):
        assert execute(folder) == NOT_STORED
        assert f"{paths.outcome(work)}, which says how, is damaged" in caplog.text
        assert not abandon(folder, "mlebench failed")
        assert unstored_result(Run.read(folder)) == work
    assert Run.read(folder).record.starts == 1
    paths.outcome(work).write_bytes(content)
    assert execute(folder) == FINAL
    _check(folder)


def _record_end_elsewhere(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record the end of an agent as its supervisor does on a disk that takes nothing."""
    ended = json.loads(paths.outcome(work).read_bytes())
    paths.outcome(work).write_bytes(b" " * supervisor.OUTCOME_SIZE)
    with monkeypatch.context() as patch, paths.outcome(work).open("r+b") as file:
        patch.setattr(os, "pwrite", lambda *_: (_ for _ in ()).throw(OSError(errno.EROFS, "read-only")))
        task = SimpleNamespace(name=work.name)
        recording = SimpleNamespace(ending=supervisor.SupervisorReport(**ended), task=task, _outcome=file.fileno())
        supervisor.Supervisor._record(cast("Any", recording))


def test_an_end_that_the_disk_did_not_take_starts_no_agent(ended_agent: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was full and writes nothing in place, or failing, or read-only: the runner could not store anything either."""
    folder = ended_agent.paths.root
    work = unstored_result(Run.read(folder))
    assert work
    _record_end_elsewhere(work, monkeypatch)
    assert unstored_result(Run.read(folder)) == work
    with full_after(0):
        assert execute(folder) == NOT_STORED
    assert execute(folder) == FINAL
    _check(folder)
    assert not paths.spare_outcome(work.name).exists()


SUPERVISOR_ON_A_READ_ONLY_DISK = """
import errno, os, sys

if "mlebench.sandbox.supervisor" in sys.orig_argv:
    root, left, ours = os.environ["TEST_ROOT"], int(os.environ["TEST_STEPS"]), set()

    def refusing(name):
        act = getattr(os, name)

        def step(first, *arguments, **options):
            global left
            is_ours = first in ours or (name == "open" and str(first).startswith(root) and arguments[0] & os.O_WRONLY)
            left -= is_ours
            if is_ours and left < 0:
                raise OSError(errno.EROFS, "read-only")
            result = act(first, *arguments, **options)
            if is_ours and name == "open":
                ours.add(result)
            return result

        setattr(os, name, step)

    for name in ("open", "write", "pwrite", "fsync"):
        refusing(name)
"""


@pytest.mark.parametrize("steps", range(8))
def test_a_disk_that_takes_nothing_from_any_step_of_the_supervisor_on(
    titanic: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """Nor can its runner store anything then. An agent that has ended is not started again."""
    run = _plan(COMMAND, f"{PROGRAM}; echo $$ >> {tmp_path}/ended", titanic, tmp_path / "runs")
    (tmp_path / "sitecustomize.py").write_text(SUPERVISOR_ON_A_READ_ONLY_DISK)
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        patch.setenv("TEST_ROOT", str(tmp_path / "runs"))
        patch.setenv("TEST_STEPS", str(steps))
        patch.setattr(RunRecorder, "_fill_and_publish", lambda *_: (_ for _ in ()).throw(StorageError("read-only")))
        assert execute(run.paths.root) in (NOT_STORED, MAY_BE_RETRIED)
    assert execute(run.paths.root) == FINAL
    record = Run.read(run.paths.root).record
    assert (record.ended, record.starts, record.report and record.report.status) == ("finished", 1, "graded")
    assert len((tmp_path / "ended").read_text().split()) == 1


def test_an_end_that_somebody_else_recorded_is_not_believed(ended_agent: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ended_agent.paths.root
    work = unstored_result(Run.read(folder))
    assert work
    _record_end_elsewhere(work, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr("mlebench.sandbox.session.os.geteuid", lambda: os.getuid() + 1)
        assert session.read_outcome(work) is None
    session.forget_outcome(work)
    assert session.read_outcome(work) is None


def test_a_damaged_end_that_somebody_removes_lets_the_agent_start_again(ended_agent: Run) -> None:
    folder = ended_agent.paths.root
    work = unstored_result(Run.read(folder))
    assert work
    paths.outcome(work).write_bytes(b"{")
    assert execute(folder) == NOT_STORED
    paths.outcome(work).unlink()
    assert execute(folder) == FINAL
    assert (Run.read(folder).record.ended, Run.read(folder).record.starts) == ("finished", 2)


def test_the_longest_detail_fits_into_the_room_for_an_outcome(tmp_path: Path) -> None:
    """Whatever an agent printed last: one that does not fit would look damaged."""
    ending = supervisor.SupervisorReport(detail="\N{GRINNING FACE}" * 9999, cause="infra_error")
    recording = cast("Any", SimpleNamespace(ending=ending, _outcome=supervisor._reserve(paths.outcome(tmp_path))))
    supervisor.Supervisor._record(recording)
    os.close(recording._outcome)
    recorded = session.read_outcome(tmp_path)
    assert recorded
    assert recorded.detail == "\N{GRINNING FACE}" * supervisor.LONGEST_DETAIL


def test_a_runner_that_is_killed_while_it_stores_an_interrupted_result_keeps_the_log(
    ended_agent: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ended_agent.paths.root
    for _ in range(2):  # the second is killed with a result staged by the first
        with monkeypatch.context() as patch:
            patch.setattr(recorder, "grade_run", lambda *_: (_ for _ in ()).throw(KilledError))
            with pytest.raises(KilledError):
                execute(folder)
    assert execute(folder) == FINAL
    _check(folder)


def test_a_supervisor_that_has_no_room_to_start_is_no_start_of_the_agent(
    titanic: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _plan(COMMAND, PROGRAM, titanic, tmp_path / "runs")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nulimit -f 0\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(python))
        assert execute(run.paths.root) == MAY_BE_RETRIED
    record = Run.read(run.paths.root).record
    assert "the supervisor died: OSError: [Errno 27]" in str(record.attempts[0].detail)
    assert (record.attempts[0].ended, record.starts) == ("infra_error", 0)
    assert execute(run.paths.root) == FINAL
    _check(run.paths.root, attempts=["infra_error", "finished"])


def test_an_outcome_that_a_killed_supervisor_had_recorded_counts(ended_agent: Run) -> None:
    work = unstored_result(Run.read(ended_agent.paths.root))
    assert work
    ended = object.__new__(SupervisorClient)
    ended._work, ended._ended, ended._supervisor = work, None, subprocess.Popen(["true"])
    assert ended._conclude().ended == "finished"
