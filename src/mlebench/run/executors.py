"""Executors that leave the work to a scheduler: it is given folders, asked which it still has, and told to drop some.

Nothing is remembered between two commands, and a scheduler is believed about a run only when it says it still has it.
The run's folder says whether it has ended. So a scheduler that forgets, purges its records or dies loses nothing, and
several executors, or a person with `mlebench run exec`, may work on one group.
"""

import hashlib
import logging
import math
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mlebench import lease as leases
from mlebench.errors import PrerequisiteError
from mlebench.paths import RunPaths
from mlebench.run.attempts import SUBMISSIONS
from mlebench.run.records import Group, Run

logger = logging.getLogger(__name__)

NAMES = ("local", "slurm", "ray")
GRACE = 1800.0  # seconds that a job gets beyond the agent's limit: to set up, to collect, to grade
OVERHEAD = 2 << 30  # bytes that a job gets beyond the agent's limit: for the runner, the validator and the grader
FIRST_LOOK, RAREST_LOOK = 1.0, 15.0  # seconds between two questions to a scheduler
TICK = 0.25
DEAD_AFTER = 120.0  # seconds within which a running job must have begun its run, as seen from other hosts


class SchedulerError(PrerequisiteError):
    """A scheduler does not answer, or refuses."""


@dataclass(frozen=True)
class Placement:
    """Where a group's runs take place, as recorded in group.json."""

    name: str = "local"
    options: dict[str, str] = field(default_factory=dict)  # for Slurm, sbatch's; for Ray, the address

    @property
    def is_remote(self) -> bool:
        return self.name != "local"


@dataclass(frozen=True)
class Resources:
    """What each run needs from a node."""

    seconds: int
    memory: int
    cpus: int
    gpus: int

    @classmethod
    def of(cls, group: Group) -> "Resources":
        limits = group.record.limits
        return cls(
            seconds=math.ceil(limits["seconds"] + GRACE),
            memory=limits["memory"] + OVERHEAD,
            cpus=math.ceil(limits["cpus"]),
            gpus=group.record.gpus_per_run,
        )


class Scheduler(Protocol):
    """What an executor asks of a scheduler, for one group. Failures are SchedulerErrors."""

    name: str
    at_once: int | None  # how many runs it may have; None: all, as it enforces `workers` itself

    def submit(self, folders: Sequence[Path]) -> None: ...

    def active(self) -> dict[Path, float]:
        """The folders that it still has, waiting or running, and for how many seconds it thinks they have run."""
        ...

    def cancel(self, folders: Collection[Path] | None = None) -> int:
        """Drop some or all of them; return how many."""
        ...


def job_name(group: Group) -> str:
    """The name by which a group's jobs are found again: the same on every host, wherever the disk is mounted."""
    return "mlebench-" + hashlib.sha256(f"{group.record.id} {group.record.created_at}".encode()).hexdigest()[:12]


class Attended:
    """Submits what is left of a group and watches until it has ended. Ctrl-C detaches: the scheduler continues."""

    def __init__(self, scheduler: Scheduler):
        self.scheduler = scheduler
        self.interrupts = 0

    def run(self, folders: Sequence[Path], tick: Callable[[], None] = lambda: None) -> None:
        """Work until every run has ended or was submitted often enough, or until interrupted."""
        waiting = dict.fromkeys(folders)  # in order
        submitted: Counter[Path] = Counter()
        before, pause = set(waiting), FIRST_LOOK
        with self._signals():
            while waiting and not self.interrupts:
                try:
                    active = self._active()
                    for folder in (before - active) & waiting.keys():
                        if Run.read(folder).record.is_final:
                            del waiting[folder]
                    pause = FIRST_LOOK if active != before else min(RAREST_LOOK, pause * 1.5)
                    before = active
                    due = self._due(waiting, active, submitted)
                    if not due and not active & waiting.keys():
                        return
                    if due:
                        self.scheduler.submit(due)
                        submitted.update(due)
                        before, pause = active | set(due), FIRST_LOOK
                except SchedulerError as error:
                    if not submitted:  # nothing is at stake yet
                        raise
                    logger.warning("%s", error)
                self._wait(pause, tick)

    def _active(self) -> set[Path]:
        """What the scheduler has. A job whose process is lost may still look alive, so check the run's lease."""
        active = self.scheduler.active()
        old = [folder for folder, seconds in active.items() if seconds > DEAD_AFTER]
        dead = {folder for folder in old if not leases.may_be_held(RunPaths(folder).leases)}
        if dead:
            self.scheduler.cancel(dead)
        return active.keys() - dead

    def _due(self, waiting: dict[Path, None], active: set[Path], submitted: Counter[Path]) -> list[Path]:
        due = [folder for folder in waiting if folder not in active and submitted[folder] < SUBMISSIONS]
        at_once = self.scheduler.at_once
        return due if at_once is None else due[: max(0, at_once - len(active))]

    def _wait(self, seconds: float, tick: Callable[[], None]) -> None:
        until = time.monotonic() + seconds
        while not self.interrupts and time.monotonic() < until:
            tick()
            time.sleep(TICK)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def interrupt(*_: object) -> None:
            self.interrupts += 1

        before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
