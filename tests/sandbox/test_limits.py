"""Limits are enforced from outside, whatever a program does, and nothing of it survives."""

import errno
import os
import select
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.sandboxes import (
    ALL,
    ISOLATING,
    MB,
    SMALL,
    long_sleep,
    make_task,
    processes,
    require,
    run_task,
    sandbox_params,
    wait_for_end,
    wait_until_gone,
)
from support.traps import run_as

from mlebench.sandbox import sandbox_named, supervisor
from mlebench.sandbox.base import Launch, Task, chown_tree
from mlebench.sandbox.cgroups import Cgroup
from mlebench.sandbox.session import SupervisorClient
from mlebench.sandbox.supervisor import Supervisor


@pytest.fixture(params=sandbox_params(*ALL))
def sandbox(request: pytest.FixtureRequest) -> str:
    require(request.param)
    return request.param


@pytest.mark.parametrize(
    ("command", "ended"),
    [("exit 0", "finished"), ("exit 7", "agent_error"), ("sh -c 'kill -9 $$'; exit $?", "agent_error")],
)
def test_a_program_that_ends_by_itself(sandbox: str, tmp_path: Path, command: str, ended: str) -> None:
    outcome, _ = run_task(sandbox, make_task(tmp_path, command))
    assert outcome.ended == ended


@pytest.mark.parametrize("name", ["bubblewrap", "process"])
def test_words_that_are_not_unicode_reach_a_program(name: str, tmp_path: Path) -> None:
    """Engines of containers replace such bytes."""
    require(name)
    task = replace(make_task(tmp_path, ""), command=("printf", "%s", os.fsdecode(b"\xffa")))
    run_task(name, task)
    assert (task.work / "run.log").read_bytes() == b"\xffa"


def test_the_clock_runs_outside(sandbox: str, tmp_path: Path) -> None:
    mark = long_sleep()
    command = f"trap '' TERM INT HUP; echo begun; sleep {mark} & wait; sleep {mark}"
    outcome, log = run_task(sandbox, make_task(tmp_path, command, replace(SMALL, seconds=10)))
    assert (outcome.ended, log.splitlines()[0]) == ("timeout", "begun")  # bash may still say which child was killed
    wait_until_gone(mark, 100)


def test_more_memory_than_allowed(sandbox: str, tmp_path: Path) -> None:
    program = "import time\nx = bytearray(900_000_000)\ntime.sleep(100)\nprint('survived')"
    outcome, log = run_task(sandbox, make_task(tmp_path, f'python3 -c "{program}"'))
    assert outcome.ended == "out_of_memory"
    assert "survived" not in log


def test_a_program_killed_for_its_memory_before_it_reported_its_end(tmp_path: Path) -> None:
    """The kernel may choose bubblewrap's own process. An agent must not be started again for that."""
    require("bubblewrap")
    task = make_task(tmp_path, "true")
    hog = ("python3", "-c", "import time; x = bytearray(900_000_000); time.sleep(100)")
    session = SupervisorClient(task, replace(sandbox_named("bubblewrap").launch(task), argv=hog))
    outcome = wait_for_end(session)
    if not outcome.enforced_by["memory"].startswith("cgroup"):
        pytest.skip("there is no control group")
    assert outcome.ended == "out_of_memory"


def test_memory_of_the_first_process_counts_without_control_groups(tmp_path: Path) -> None:
    """As for most ordinary users: then it is watched."""
    program = "import time; x = bytearray(900_000_000); time.sleep(100)"
    user = 65534 if os.geteuid() == 0 else None
    outcome, log = run_as(user, tmp_path, f'exec python3 -c "{program}"', sandbox="process")
    assert outcome == "out_of_memory", log


def test_memory_counts_without_control_groups_when_the_first_thread_has_ended(tmp_path: Path) -> None:
    program = """
import ctypes, os, threading, time
def grow():
    while ') Z ' not in open('/proc/self/stat').read():
        time.sleep(0.01)
    memory = bytearray(900_000_000)
    time.sleep(100)
threading.Thread(target=grow).start()
ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)
"""
    user = 65534 if os.geteuid() == 0 else None
    outcome, log = run_as(user, tmp_path, f'exec python3 -c "{program}"', sandbox="process")
    assert outcome == "out_of_memory", log


def test_threads_count_as_processes_without_control_groups(tmp_path: Path) -> None:
    program = """
import threading, time
for _ in range(1000):
    threading.Thread(target=time.sleep, args=(100,)).start()
"""
    user = 65534 if os.geteuid() == 0 else None
    outcome, log = run_as(user, tmp_path, f'exec python3 -c "{program}"', sandbox="process")
    assert outcome == "agent_error", log


def test_more_disk_than_allowed(sandbox: str, tmp_path: Path) -> None:
    command = f"cd {_writable(sandbox)}; for i in 1 2 3 4; do head -c 20000000 /dev/zero > $i; done"
    command = f"{command}; sleep 280 && echo survived"
    outcome, log = run_task(sandbox, make_task(tmp_path, command))
    assert outcome.ended == "over_disk"
    assert "survived" not in log


@pytest.mark.parametrize(
    "what", ["for i in $(seq 3000); do : > $i; done", "for i in $(seq 300); do mkdir a; cd a; done"]
)
def test_more_files_than_allowed_and_folders_without_end(sandbox: str, tmp_path: Path, what: str) -> None:
    outcome, _ = run_task(sandbox, make_task(tmp_path, f"cd {_writable(sandbox)}; {what}; sleep 280"))
    assert outcome.ended == "over_disk"


def test_a_fork_bomb_is_contained(sandbox: str, tmp_path: Path) -> None:
    mark = long_sleep()
    bomb = f"bomb() {{ bomb | bomb & }}; bomb; sleep {mark}; echo survived"
    outcome, _ = run_task(sandbox, make_task(tmp_path, bomb, replace(SMALL, seconds=4)))
    assert outcome.ended in ("timeout", "agent_error")
    wait_until_gone(mark, 100)


def test_a_long_log_keeps_its_beginning_and_its_end(sandbox: str, tmp_path: Path) -> None:
    command = "echo the beginning; yes | head -c 30000000; echo the end"
    outcome, log = run_task(sandbox, make_task(tmp_path, command))
    assert outcome.ended == "finished"
    assert log.startswith("the beginning\n")
    assert log.endswith("the end\n")
    assert "bytes of output were left out" in log
    assert len(log) < 4 * MB


def test_what_a_program_left_running_ends_with_it(sandbox: str, tmp_path: Path) -> None:
    mark = long_sleep()
    command = f"setsid sleep {mark} & (sleep {mark} &); sleep 0.3; echo bye"
    outcome, log = run_task(sandbox, make_task(tmp_path, command))
    assert (outcome.ended, log.strip()) == ("finished", "bye")
    wait_until_gone(mark, 100)


def test_a_sandbox_ends_with_its_runner(sandbox: str, tmp_path: Path) -> None:
    mark = long_sleep()
    task = make_task(tmp_path, f"sleep {mark}")
    session = SupervisorClient(task, sandbox_named(sandbox).launch(task))
    session.stop()  # what the supervisor sees when the runner dies: the end of its input
    assert wait_for_end(session, wanted=False).ended == "cancelled"
    wait_until_gone(mark, 100)


@pytest.mark.parametrize("name", sandbox_params(*ISOLATING))
def test_a_sandbox_ends_with_its_killed_supervisor(name: str, tmp_path: Path) -> None:
    """Nothing cleans up here: the runner was killed too. One of the programs tries to keep the relay's input open."""
    require(name)
    mark = long_sleep()
    programs = f"sleep {mark} 9<>/proc/1/fd/0 & setsid sleep {mark} & echo begun; sleep {mark}"
    session, task = _begun(name, tmp_path, f"trap '' TERM; {programs}")
    os.kill(session.pid, signal.SIGKILL)
    try:
        wait_until_gone(mark, 100)
        assert session.poll() is not None
    finally:
        sandbox_named(name).remove_leftovers(task.name)


def test_whoever_looks_into_a_tasks_folder_is_not_taken_for_its_process(tmp_path: Path) -> None:
    """A person is told where an agent's work is kept, goes there, and resumes the run."""
    task = make_task(tmp_path, "true")
    visitor = subprocess.Popen(["sleep", "60"], env={**os.environ, "PWD": str(tmp_path / task.name)})
    try:
        sandbox_named("process").remove_leftovers(task.name)
        assert visitor.poll() is None
    finally:
        visitor.kill()
        visitor.wait()


@pytest.mark.parametrize("engine", sandbox_params("docker", "podman"))
def test_a_killed_client_is_not_the_agents_fault(engine: str, tmp_path: Path) -> None:
    """The container ends with it, so the engine says that it has ended."""
    require(engine)
    mark = long_sleep()
    session, task = _begun(engine, tmp_path, f"echo begun; sleep {mark}")
    (client,) = processes(f"\0--name\0mlebench-{task.name}")
    os.kill(client, signal.SIGKILL)
    outcome = wait_for_end(session)
    sandbox_named(engine).remove_leftovers(task.name)
    assert outcome.ended == "infra_error"
    wait_until_gone(mark, 100)


def _begun(name: str, folder: Path, command: str) -> tuple[SupervisorClient, Task]:
    """A task that has printed its first line."""
    task = make_task(folder, command)
    session = SupervisorClient(task, sandbox_named(name).launch(task))
    log = task.work / "run.log"
    deadline = time.monotonic() + 120
    while not (log.is_file() and "begun" in log.read_text()):
        assert time.monotonic() < deadline, "the task has not begun after 120 s"
        session.heartbeat()
        assert session.poll() is None, log.read_text()
        time.sleep(0.02)
    return session, task


def test_a_sandbox_that_cannot_be_set_up_is_not_the_agents_fault(tmp_path: Path) -> None:
    require("bubblewrap")
    from mlebench.sandbox.base import Bind

    task = make_task(tmp_path, "echo hello", binds=(Bind(tmp_path / "missing", "/home/data"),))
    outcome, _ = run_task("bubblewrap", task)
    assert outcome.ended == "infra_error"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_folders_are_given_to_the_agent_or_the_fault_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent whose folder for submissions is not its own would seem to have submitted nothing."""
    task, scan = make_task(tmp_path, "true"), os.scandir

    def fail_below_home(folder: str) -> Any:
        if Path(folder).name == "submission":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), folder)
        return scan(folder)

    (task.home / "submission").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", fail_below_home)
        with pytest.raises(OSError, match="Too many open files"):
            chown_tree(task.work, 65534)


def test_a_clients_success_does_not_count_without_its_containers(tmp_path: Path) -> None:
    """As podman's does when told to stop. The engine says with which code a container has ended, if it has."""
    task = make_task(tmp_path, "true")
    outcomes = []
    for code, says in (("0", "0"), ("0", ""), ("0", "137"), ("7", "7"), ("7", "0")):
        session = SupervisorClient(
            task, Launch(argv=("bash", "-c", f"exit {code}"), exit_code_query=("echo", says), cgroup=False)
        )
        outcomes.append(wait_for_end(session).ended)
    assert outcomes == ["finished", "infra_error", "infra_error", "agent_error", "infra_error"]


def test_the_record_says_what_enforces_each_limit(sandbox: str, tmp_path: Path) -> None:
    task = make_task(tmp_path, "true")
    session = SupervisorClient(task, sandbox_named(sandbox).launch(task))
    wait_for_end(session)
    assert session.enforced_by.keys() == {"time", "disk", "memory", "cpu", "pids"}


def test_without_a_control_group_the_record_says_that_memory_is_not_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files in memory are not counted, so watching processes is no limit."""
    monkeypatch.setattr(Cgroup, "create", lambda *_: None)
    task = make_task(tmp_path, "true", replace(SMALL, cpus=None))
    supervisor = Supervisor(task, sandbox_named("process").launch(task))
    supervisor.log.finish()
    assert supervisor.ending.kept["memory"].startswith("not limited")


@pytest.mark.parametrize("name", sandbox_params(*ISOLATING))
def test_processes_that_lost_their_parent_do_not_stay_as_zombies(name: str, tmp_path: Path) -> None:
    """Each would count against the limit on processes."""
    require(name)
    orphans = "for i in $(seq 100); do (sleep 0.01 &); done"
    count = "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l"
    wait = f"for i in $(seq 100); do [ $({count}) = 0 ] && exit 0; sleep 0.1; done; exit 1"
    outcome, log = run_task(name, make_task(tmp_path, f"{orphans}; {wait}"))
    assert outcome.ended == "finished", log


def _writable(sandbox: str) -> str:
    return "$HOME" if sandbox == "process" else "/home"


class _Silence:
    """Stands for `select.poll` and a clock: nothing happens for these numbers of seconds, then the program ends."""

    def __init__(self, *pauses: float):
        self.now, self._pauses = 0.0, list(pauses)
        self._child = 0

    def register(self, descriptor: int, _: int) -> None:
        self._child = descriptor

    def poll(self, _: float) -> list[tuple[int, int]]:
        if not self._pauses:
            return [(self._child, 1)]
        self.now += self._pauses.pop(0)
        return []


@pytest.mark.parametrize(
    ("pauses", "cause"), [([1.0, 100.0, 1.0], None), ([1.0] * 40, "cancelled"), ([100.0, *[1.0] * 40], "cancelled")]
)
def test_a_job_that_was_suspended_loses_no_run(
    monkeypatch: pytest.MonkeyPatch, pauses: list[float], cause: str | None
) -> None:
    """As by Slurm: no runner could send anything meanwhile. One that hangs afterwards still has its 30 seconds."""
    silence = _Silence(*pauses)
    monkeypatch.setattr(supervisor, "select", SimpleNamespace(poll=lambda: silence, POLLIN=select.POLLIN))
    monkeypatch.setattr(supervisor, "time", SimpleNamespace(monotonic=lambda: silence.now))
    monkeypatch.setattr(supervisor, "sys", SimpleNamespace(stdin=SimpleNamespace(fileno=lambda: -1)))
    watching = object.__new__(Supervisor)
    watching.limits = cast("Any", SimpleNamespace(seconds=1000.0))
    watching.launch = cast("Any", SimpleNamespace(cgroup=False, health_check=[]))
    watching.ending, watching.output, watching.pid = supervisor.SupervisorReport(), -1, os.getpid()
    watching.started = watching.heard = 0.0
    monkeypatch.setattr(watching, "_is_disk_full", lambda: False)
    watching._watch()
    assert watching.ending.cause == cause
