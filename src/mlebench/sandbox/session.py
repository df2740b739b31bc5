"""A running task: the runner's end of the supervisor."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError, SandboxError, StorageError
from mlebench.core.outcomes import AGENT_ERROR, FINISHED, INFRA_ERROR, OUT_OF_MEMORY, OVER_DISK, RUN_OUTCOMES
from mlebench.core.processes import is_stopped
from mlebench.core.untrusted import UntrustedFileError, open_untrusted
from mlebench.records.run import ResourceUse
from mlebench.sandbox.base import SILENCE, Launch, Task, encode_job
from mlebench.sandbox.shared_disk import THIS_RUN

LONGEST_PAUSE = 5.0  # seconds between two heartbeats


@dataclass(frozen=True)
class TaskOutcome:
    """How a task ended, in the words of a run's record."""

    ended: str
    detail: str | None
    exit_code: int | None
    seconds: float
    used: ResourceUse = ResourceUse()
    enforced_by: dict[str, str] = field(default_factory=dict)  # what enforced each limit
    agent_started: bool = True  # False: the sandbox failed before it could start the program


class SupervisorClient:
    """Starts a task and keeps it running as long as `heartbeat` says that it is still wanted.

    `before_start` gets the supervisor's process id, and can record it, before the supervisor starts anything.
    """

    def __init__(self, task: Task, launch: Launch, before_start: Callable[[int], None] | None = None):
        try:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-P", "-m", "mlebench.sandbox.supervisor"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=task.held_descriptors,
                start_new_session=True,  # Ctrl-C at a terminal is the runner's business
            )
        except OSError as error:
            raise SandboxError(f"the supervisor cannot be started: {error}") from error
        os.set_blocking(self._output, False)
        self._work = task.work
        self._lines = bytearray()
        self.enforced_by: dict[str, str] = {}
        self.pid = self._supervisor.pid
        self._last_heartbeat, self._stopped = time.monotonic(), 0.0
        self._is_starting = False
        self._ended: dict[str, Any] | None = None
        self._outcome: TaskOutcome | None = None
        try:
            if before_start:
                before_start(self.pid)
        except BaseException:
            self._conclude()  # the supervisor ends, because nothing was asked for
            raise
        self._write(encode_job(task, launch))

    @property
    def _output(self) -> int:
        if self._supervisor.stdout is None:
            raise SandboxError("the supervisor has no output")
        return self._supervisor.stdout.fileno()

    def descriptor(self) -> int:
        """Return a descriptor that becomes readable when something has happened."""
        return self._output

    def heartbeat(self) -> None:
        """Say that the task is still wanted. A supervisor that stays stopped enforces no limit, not even time: end
        it."""
        self._write(b".")
        if self._stopped > SILENCE:
            return
        pause, self._last_heartbeat = time.monotonic() - self._last_heartbeat, time.monotonic()
        # A long pause says nothing: the whole job was suspended, and its processes continue one after the other.
        self._stopped = self._stopped + min(pause, LONGEST_PAUSE) if is_stopped(self.pid) else 0.0
        if self._stopped > SILENCE:
            self._supervisor.kill()

    def stop(self) -> None:
        """End the task; it counts as cancelled."""
        if self._supervisor.stdin:
            with contextlib.suppress(OSError):
                self._supervisor.stdin.close()

    def poll(self) -> TaskOutcome | None:
        """How it ended; None while it is running."""
        if self._outcome:
            return self._outcome
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._output, 1 << 16):
                self._lines += data
        while b"\n" in self._lines:
            line, _, remainder = self._lines.partition(b"\n")
            self._lines = bytearray(remainder)
            event = json.loads(line)
            if event.pop("event") == "starting":
                self.enforced_by, self._is_starting = event["kept"], True
            else:
                self._ended = event
        if self._ended is None and self._supervisor.poll() is None:
            return None
        self._outcome = self._conclude()
        return self._outcome

    def _conclude(self) -> TaskOutcome:
        self.stop()
        errors = self._supervisor.stderr.read() if self._supervisor.stderr else b""
        self._supervisor.wait()
        ended = self._ended
        recorded = read_outcome(self._work) if ended is None else None
        for stream in (self._supervisor.stdout, self._supervisor.stderr):
            if stream:
                stream.close()
        if recorded:
            return recorded  # the supervisor was killed just after it had recorded this
        if ended is None:
            lines = errors.decode(errors="replace").strip().splitlines()
            if self._stopped > SILENCE:
                lines = [f"somebody had stopped it for more than {SILENCE:g} s"]
            detail = f"the supervisor died{f': {lines[-1]}' if lines else ''}"
            return TaskOutcome(INFRA_ERROR, detail, None, 0.0, agent_started=self._is_starting)
        return _outcome_of(ended)

    def _write(self, data: bytes) -> None:
        if self._supervisor.stdin:
            with contextlib.suppress(OSError, ValueError):
                self._supervisor.stdin.write(data)
                self._supervisor.stdin.flush()


def read_outcome(work: Path) -> TaskOutcome | None:
    """How the task of a working folder ended, as its supervisor recorded it; None if it did not get that far.

    A record that the disk does not show now is an OSError, and one that is damaged a StorageError: a supervisor writes
    it only when the agent has ended.
    """
    file = paths.outcome(work)
    try:
        content = _spare_outcome(work) or file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not content.strip():  # what the supervisor reserved before the start
        return None
    try:
        return _outcome_of(json.loads(content))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise StorageError(
            f"the agent has ended, but {file}, which says how, is damaged: restore it, or remove it to have the agent "
            "started again"
        ) from None


def _spare_outcome(work: Path) -> bytes | None:
    """What a supervisor recorded elsewhere, because the disk took nothing; only its own user is believed."""
    try:
        with open_untrusted(paths.spare_outcome(work.name)) as file:
            return file.read() if os.fstat(file.fileno()).st_uid == os.geteuid() else None
    except (UntrustedFileError, PrerequisiteError):
        return None


def forget_outcome(work: Path) -> None:
    """Have the task of a working folder count as one that has not ended by itself."""
    for file in (paths.outcome(work), paths.spare_outcome(work.name)):
        file.unlink(missing_ok=True)


def _outcome_of(ended: dict[str, Any]) -> TaskOutcome:
    """The supervisor's `Ending` in the words of a run's record."""
    names = ("cause", "detail", "exit_code", "seconds", "kept", "agent_started")
    cause, detail, code, seconds, enforced_by, agent_started = (ended.pop(name) for name in names)
    if cause not in (None, *RUN_OUTCOMES):
        raise ValueError(f"{cause!r} is no way for a run to end")
    if cause is None:
        cause, detail = _verdict(code, ended["oom_kills"], ended.get("disk_filled_by"))
    return TaskOutcome(cause, detail, code, seconds, msgspec.convert(ended, ResourceUse), enforced_by, agent_started)


def _verdict(code: int, oom_kills: int, disk_filled_by: str | None) -> tuple[str, str | None]:
    if code == 0:
        return FINISHED, None
    if oom_kills:
        return OUT_OF_MEMORY, f"the kernel killed {oom_kills} processes because memory ran out"
    detail = f"the agent ended with exit code {code}" if code > 0 else f"the agent was killed by signal {-code}"
    if disk_filled_by is None:
        return AGENT_ERROR, detail
    cause = OVER_DISK if disk_filled_by == THIS_RUN else INFRA_ERROR
    return cause, f"{detail} on a disk that {disk_filled_by} had filled"
