"""Runs programs in real sandboxes, for tests. A sandbox that this machine lacks is skipped, with the reason."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from mlebench.records.group import Limits
from mlebench.sandbox import sandbox_named
from mlebench.sandbox.base import Task
from mlebench.sandbox.session import SupervisorClient, TaskOutcome
from support.waiting import wait_until

MB = 1 << 20
# Time is plenty: a machine may be busy, and only a test that fails takes that long.
SMALL = Limits(seconds=150, memory=300 * MB, cpus=1, shm=16 * MB, processes=64, disk=50 * MB, inodes=2000, log=2 * MB)
ISOLATING = ("bubblewrap", "docker", "podman")
ALL = (*ISOLATING, "process")


def sandbox_params(*names: str) -> list[Any]:
    """Sandboxes as parameters of a test. `make test` leaves podman out: it shares its code with docker."""
    return [pytest.param(name, marks=pytest.mark.full if name == "podman" else ()) for name in names]


def require(name: str) -> None:
    """Skip unless a sandbox can be used here."""
    if fault := sandbox_named(name).fault():
        pytest.skip(f"sandbox {name}: {fault}")


@contextmanager
def breakable_bwrap(*broken: str) -> Iterator[Path]:
    """A folder for PATH, with which bubblewrap cannot start a sandbox on the nodes that the file `broken` in it names.

    The nodes may be on one machine: MLEBENCH_NODE says which one a process is on.
    """
    folder = Path(tempfile.mkdtemp(prefix="programs-"))
    folder.chmod(0o755)  # as root, sandboxes are started by another user
    (folder / "broken").write_text("".join(f"{node}\n" for node in broken))
    bwrap = folder / "bwrap"
    bwrap.write_text(
        f'#!/bin/sh\nif grep -sqxF "$MLEBENCH_NODE" {folder}/broken; then\n'
        f'    echo "No permissions to create new namespace" >&2; exit 1\nfi\nexec {shutil.which("bwrap")} "$@"\n'
    )
    bwrap.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def make_task(folder: Path, command: str, limits: Limits = SMALL, **options: object) -> Task:
    work = folder / f"work-{uuid4().hex[:8]}"
    (work / "home").mkdir(parents=True)
    (work / "tmp").mkdir()
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home", "LANG": "C.UTF-8"}
    task = Task(uuid4().hex[:16], ("bash", "-c", command), work, limits, env=env)
    return replace(task, **options)


def wait_for_end(session: SupervisorClient, seconds: float = 120, *, wanted: bool = True) -> TaskOutcome:
    """How a task ends; fail if it does not. `wanted`: tell the supervisor meanwhile that the task should go on."""

    def poll() -> TaskOutcome | None:
        if wanted:
            session.heartbeat()
        return session.poll()

    return wait_until(poll, "the sandbox has ended", seconds)


def long_sleep() -> str:
    """Seconds to sleep, longer than any test waits; no other test, or run of the tests, has the same."""
    return f"200.{uuid4().int % 10**9:09}"


def run_task(name: str, task: Task) -> tuple[TaskOutcome, str]:
    """How a task ended, and what it printed."""
    session = SupervisorClient(task, sandbox_named(name).launch(task))
    try:
        outcome = wait_for_end(session, task.limits.seconds + 120)
    finally:
        session.stop()
    return outcome, (task.work / "run.log").read_text(errors="replace")


def processes(mark: str) -> list[int]:
    """Processes of this machine with these words in their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                if mark.encode() in (folder / "cmdline").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


def wait_until_gone(mark: str, seconds: float = 60) -> None:
    """Wait until processes with these words have ended. They must be such as would not end by themselves by then."""
    wait_until(lambda: not processes(mark), f"no process has {mark!r} in its command line", seconds)


def leftovers() -> Iterator[str]:
    """What sandboxes of this program may leave behind: control groups, containers, folders of proxies."""
    for folder, names, _ in os.walk("/sys/fs/cgroup"):  # unlike glob, it tolerates groups that end meanwhile
        yield from (f"{folder}/{name}" for name in names if name.startswith("mlebench-"))
    yield from map(str, Path("/tmp").glob("mlebench-*-*"))
    for engine in filter(shutil.which, ("docker", "podman")):
        listed = subprocess.run(
            [engine, "ps", "-a", "--filter", "name=mlebench-", "--format", "{{.Names}}"],
            capture_output=True,
            text=True,
            check=False,
        )
        yield from listed.stdout.split()
