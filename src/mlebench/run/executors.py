"""Executors that leave the work to a scheduler: it is given folders, asked which it still has, and told to drop some.

Nothing is remembered between two commands, and a scheduler is only asked which jobs are still queued or running.
The run's folder says whether it has ended. So a scheduler that forgets, purges its records or dies loses nothing, and
several executors, or a person with `mlebench run exec`, may work on one group.
"""

import hashlib
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mlebench.core import leases
from mlebench.core.errors import PrerequisiteError
from mlebench.core.paths import GroupPaths, RunPaths
from mlebench.records.group import Limits
from mlebench.records.run_groups import Group, read_run
from mlebench.run.hosts import stop_line, stopped_hosts
from mlebench.run.retry_rules import failed_nodes, may_be_submitted
from mlebench.run.signals import on_stop_signal

logger = logging.getLogger(__name__)

GRACE = 1800.0  # seconds that a job gets beyond the agent's limit: to set up, to collect, to grade
OVERHEAD = 2 << 30  # bytes that a job gets beyond the agent's limit: for the runner, the validator and the grader
FIRST_LOOK, RAREST_LOOK = 1.0, 15.0  # seconds between two questions to a scheduler
TICK = 0.25
DEAD_AFTER = 120.0  # seconds within which a running job must have begun its run, as seen from other hosts


class SchedulerError(PrerequisiteError):
    """A scheduler does not answer, or refuses."""


@dataclass(frozen=True)
class Resources:
    """What each run needs from a node."""

    seconds: int
    memory: int
    cpus: int
    gpus: int

    @classmethod
    def of(cls, limits: Limits, gpus: int) -> "Resources":
        return cls(
            seconds=math.ceil(limits.seconds + GRACE),
            memory=(limits.memory or 0) + OVERHEAD,
            cpus=math.ceil(limits.cpus or 1),
            gpus=gpus,
        )


@dataclass(frozen=True)
class SchedulerJob:
    """A run that a scheduler has."""

    seconds: float  # for how long it thinks that the run has been running
    waits_for: str | None = None  # why it has not started it yet, in its own words


class Scheduler(Protocol):
    """What an executor asks of a scheduler, for one group. Failures are SchedulerErrors."""

    name: str

    def submit(self, folders: Sequence[Path], avoid: Collection[str]) -> Collection[Path]:
        """Submit as many of them as `workers` allows now, for any node but these; return which."""
        ...

    def jobs(self) -> dict[Path, SchedulerJob]:
        """The folders that it still has, waiting or running."""
        ...

    def nodes(self) -> set[str]:
        """The nodes that might take runs."""
        ...

    def cancel(self, folders: Collection[Path] | None = None) -> int:
        """Drop some or all of them; return how many."""
        ...

    def warning(self) -> str | None:
        """What a person should know before runs are submitted."""
        ...


def job_name(group: Group) -> str:
    """The name by which a group's jobs are found again: the same on every host, wherever the disk is mounted."""
    return "mlebench-" + hashlib.sha256(f"{group.record.id} {group.record.created_at}".encode()).hexdigest()[:12]


class SchedulerExecutor:
    """Submits what is left of a group and watches until it has ended. Ctrl-C detaches: the scheduler continues."""

    def __init__(self, scheduler: Scheduler, group: GroupPaths):
        self.scheduler = scheduler
        self.interrupts = 0
        self.is_cancelled = False  # by `runs cancel`
        self._group = group
        self._waiting: dict[Path, None] = {}  # runs that have not ended, in order
        self._active: set[Path] | None = None  # what the scheduler had when it last answered
        self._submitted: Counter[Path] = Counter()
        self._stopped: dict[str, str] = {}
        self._pause = FIRST_LOOK
        self._said: set[str] = set()

    def run(self, folders: Sequence[Path], tick: Callable[[], None] = lambda: None) -> None:
        """Work until every run has ended or was submitted often enough, or until interrupted or cancelled."""
        self._waiting = dict.fromkeys(folders)
        with on_stop_signal(self._interrupt):
            while self._waiting and not self.interrupts:
                if self._group.cancelled.exists():
                    self._cancel()
                    return
                try:
                    if not self._look():
                        return
                except SchedulerError as error:
                    if not self._active:  # nothing has been submitted; safe to fail
                        raise
                    self._say(f"{error}; asking again until it answers")
                    self._remove_ended(self._active)
                self._wait(tick)

    def _look(self) -> bool:
        """Ask the scheduler, and submit what is due; False if nothing is left to watch."""
        jobs = self._jobs()
        active, before = set(jobs), self._active
        self._remove_ended(self._waiting.keys() - active if before is None else before - active)
        self._pause = FIRST_LOOK if active != before else min(RAREST_LOOK, self._pause * 1.5)
        self._active = active
        self._note_stopped_hosts()
        self._say_why_none_starts(jobs)
        avoid, due = self._due(active)
        if due and (sent := set(self.scheduler.submit(due, avoid))):
            self._submitted.update(sent)
            self._active, self._pause = active | sent, FIRST_LOOK
        return bool(due or active & self._waiting.keys())

    def _jobs(self) -> dict[Path, SchedulerJob]:
        """What the scheduler has. A job whose process is lost may still look alive, so check the run's lease."""
        jobs = self.scheduler.jobs()
        old = [folder for folder, job in jobs.items() if job.seconds > DEAD_AFTER]
        dead = {folder for folder in old if not leases.may_be_held(RunPaths(folder).leases)}
        if dead:
            self.scheduler.cancel(dead)
        return {folder: job for folder, job in jobs.items() if folder not in dead}

    def _remove_ended(self, folders: Collection[Path]) -> None:
        for folder in self._waiting.keys() & folders:
            if read_run(folder).is_settled:
                del self._waiting[folder]

    def _note_stopped_hosts(self) -> None:
        stopped = stopped_hosts(self._group)
        for host in stopped.keys() - self._stopped.keys():
            logger.warning("%s", stop_line(host, stopped[host]))
            self._submitted.clear()  # what such a host did to runs is not held against them
        self._stopped = stopped

    def _due(self, active: set[Path]) -> tuple[set[str], list[Path]]:
        """The nodes to avoid, and the runs to submit."""
        idle = [folder for folder in self._waiting if folder not in active]
        due = [folder for folder in idle if may_be_submitted(self._submitted[folder])]
        again = (read_run(folder).record for folder in due if self._submitted[folder])
        failed = {node for record in again for node in failed_nodes(record.attempts)}
        if not due or not (self._stopped or failed):
            return set(), due
        nodes = self.scheduler.nodes()
        stopped = nodes & self._stopped.keys()  # other executors have other hosts
        if stopped and stopped == nodes:
            return stopped, []
        avoid = stopped | (nodes & failed)
        return (stopped if avoid == nodes else avoid), due

    def _say_why_none_starts(self, jobs: dict[Path, SchedulerJob]) -> None:
        reasons = sorted({job.waits_for or "" for job in jobs.values()})
        if jobs and all(reasons):
            self._say(f"{self.scheduler.name} has not started any run yet: {', '.join(reasons)}")

    def _say(self, message: str) -> None:
        """Log a message once: a scheduler is asked thousands of times."""
        if message not in self._said:
            logger.warning("%s", message)
        self._said.add(message)

    def _cancel(self) -> None:
        self.is_cancelled = True
        with suppress(SchedulerError):  # what was submitted while the group was being cancelled
            self.scheduler.cancel()

    def _wait(self, tick: Callable[[], None]) -> None:
        until = time.monotonic() + self._pause
        while not self.interrupts and time.monotonic() < until and not self._group.cancelled.exists():
            tick()
            time.sleep(TICK)

    def _interrupt(self) -> None:
        self.interrupts += 1
