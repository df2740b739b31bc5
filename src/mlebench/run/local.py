"""The local executor: `run exec` in processes of this machine, `workers` at a time. It keeps no state of its own.

The run's folder is the only source of truth. So the executor may be killed at any time, and two of them may work on
one group.
"""

import logging
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mlebench.core import leases
from mlebench.core.paths import GroupPaths, RunPaths
from mlebench.records.run_groups import Run, read_run
from mlebench.run.execute import abandon, unstored_result
from mlebench.run.gpus import HOLDERS_VARIABLE, GpuLease, GpuPool, take
from mlebench.run.hosts import stop_line, stopped_hosts, this_host
from mlebench.run.retry_rules import MAY_BE_RETRIED, NextStep, after_exec
from mlebench.run.signals import PARENT_VARIABLE, on_stop_signal

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
LOOK_PAUSE = 5.0  # seconds between two looks at a run that another process holds


@dataclass
class _QueuedRun:
    folder: Path
    not_before: float = 0.0
    pauses: int = 0
    is_held: bool = False  # by another process, when we last looked
    failures: int = 0  # in a row: crashes, and attempts whose agent was not started

    def pause(self, longest: float = LONGEST_PAUSE) -> None:
        """Try again later, after a longer pause each time."""
        pause = min(longest, FIRST_PAUSE * 2**self.pauses)
        self.pauses += 1
        self.not_before = time.monotonic() + pause * random.uniform(0.5, 1.0)


@dataclass
class _Worker:
    job: _QueuedRun
    process: subprocess.Popen[bytes]
    pidfd: int
    interrupts_sent: int = 0  # interrupts passed on to it


class LocalExecutor:
    """Does a group's runs, `workers` at a time, each with GPUs that no other run on this machine has."""

    def __init__(self, group: GroupPaths, workers: int, gpus: GpuPool | None = None):
        self._group = group
        self._most = workers
        self._gpus = gpus or GpuPool()
        self._said_waiting = False
        self._workers: list[_Worker] = []
        self._pending: deque[_QueuedRun] = deque()
        # Its other end stays open exactly as long as this process lives.
        self._parent_pipe, self._our_end = os.pipe()
        self._leases = leases.Observer()
        self.interrupts = 0
        self.is_cancelled = False  # by `runs cancel`
        self._has_stopped = False

    def run(self, folders: Sequence[Path], tick: Callable[[], None] = lambda: None) -> None:
        """Work until every run is final, or until interrupted or cancelled. `tick` is called a few times a second."""
        self._pending = deque(_QueuedRun(folder) for folder in folders)
        try:
            with on_stop_signal(self._interrupt):
                while self._pending or self._workers:
                    if not self.is_cancelled and self._group.cancelled.exists():
                        self.is_cancelled = True
                        self._interrupt()
                    if self.interrupts:
                        self._pending.clear()
                        self._pass_on()
                    self._start_some()
                    self._wait()
                    tick()
        finally:
            os.close(self._our_end)  # which ends the workers that are left if `tick` has failed
            os.close(self._parent_pipe)
            for worker in self._workers:
                worker.process.wait()
                os.close(worker.pidfd)

    def _interrupt(self) -> None:
        """The first interrupt ends runs cleanly, the second at once."""
        self.interrupts += 1
        self._pass_on()

    def _pass_on(self) -> None:
        """Pass every interrupt on to every worker, even one that was started at that very moment."""
        for worker in list(self._workers):
            if worker.interrupts_sent < self.interrupts:
                worker.interrupts_sent = self.interrupts
                worker.process.send_signal(signal.SIGTERM if self.interrupts == 1 else signal.SIGKILL)

    def _start_some(self) -> None:
        now = time.monotonic()
        for _ in range(len(self._pending)):
            if len(self._workers) == self._most:
                return
            job = self._pending.popleft()
            if job.not_before > now:
                self._pending.append(job)
                continue
            if read_run(job.folder).is_settled:  # another runner may have finished it
                continue
            if self._leases.is_held(RunPaths(job.folder).leases):
                job.is_held, job.failures = True, 0
                job.pause(LOOK_PAUSE)
                self._pending.append(job)
                continue
            if job.is_held:
                job.is_held, job.pauses = False, 0
            gpus = take(self._gpus)
            if gpus is None:
                self._pending.appendleft(job)
                self._say_waiting()
                return
            try:
                self._start(job, gpus)
            finally:
                gpus.close()  # the process that was started holds them

    def _say_waiting(self) -> None:
        if not self._said_waiting:
            share, names = self._gpus.share, ", ".join(self._gpus.names)
            logger.info("Waiting for %d of the GPUs %s: other runs on this machine hold them", share, names)
        self._said_waiting = True

    def _start(self, job: _QueuedRun, gpus: GpuLease) -> None:
        command = [sys.executable, "-P", "-m", "mlebench", "run", "exec", str(job.folder)]
        env = {**os.environ, PARENT_VARIABLE: str(self._parent_pipe)}
        if gpus.names:
            command += ["--gpus", ",".join(gpus.names)]
            env[HOLDERS_VARIABLE] = ",".join(map(str, gpus.descriptors))
        with _open_log(job.folder) as log:
            process = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                pass_fds=[self._parent_pipe, *gpus.descriptors],
                start_new_session=True,  # Ctrl-C reaches only us, and we pass it on
            )
        self._workers.append(_Worker(job, process, os.pidfd_open(process.pid)))

    def _wait(self) -> None:
        pause = 0.25 if len(self._workers) < self._most or not self._pending else 0.5
        select.select([worker.pidfd for worker in self._workers], [], [], pause)
        for worker in [worker for worker in self._workers if worker.process.poll() is not None]:
            self._workers.remove(worker)
            os.close(worker.pidfd)
            self._judge(worker)

    def _judge(self, worker: _Worker) -> None:
        job, code = worker.job, worker.process.returncode
        run = read_run(job.folder)
        if self.interrupts or run.is_settled:
            return
        step, job.failures = after_exec(run.record, code, job.failures)
        if step is NextStep.NOTHING:
            return
        if reason := stopped_hosts(self._group).get(this_host()):
            self._stop(reason)
            return
        if step is NextStep.ABANDON and _abandon(run, code):
            return
        if step is NextStep.LEAVE_PLANNED:
            _say_why_planned(run, code)
            return
        job.pause()
        self._pending.append(job)

    def _stop(self, reason: str) -> None:
        """Start nothing more on this host."""
        if self._pending or not self._has_stopped:
            logger.warning("%s", stop_line(this_host(), reason))
        self._has_stopped = True
        self._pending.clear()


def _abandon(run: Run, code: int) -> bool:
    """End a run that mlebench cannot do, unless an agent's work would be lost. False: try it again."""
    reason = f"mlebench failed ({code}): see {run.paths.runner_log.name}"
    return abandon(run.paths.root, reason) or unstored_result(Run.read(run.paths.root)) is not None


def _say_why_planned(run: Run, code: int) -> None:
    attempt = run.record.last_attempt
    crash = None if code == MAY_BE_RETRIED else f"mlebench failed ({code}): see {run.paths.runner_log.name}"
    reason = crash or (attempt and attempt.detail)
    logger.warning("%s could not be started here and stays planned: %s", run.paths.root.name, reason)


def _open_log(folder: Path) -> IO[bytes]:
    try:
        return RunPaths(folder).runner_log.open("ab")
    except OSError:  # on a full disk, say; the exit code tells what matters
        return open(os.devnull, "ab")  # noqa: PTH123
