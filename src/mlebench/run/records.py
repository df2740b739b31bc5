"""The records of a run group and of each of its runs. docs/runs.md explains every field.

A group's record says what was asked for and does not change, except for the report that counts. A run's record is
replaced at each step; what all runs of a group share is in the group's.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from mlebench import lease as leases
from mlebench.errors import PrerequisiteError
from mlebench.paths import GroupPaths, RunPaths
from mlebench.records import NotJsonError, Record

PLANNED, RUNNING, ENDED = STATES = ("planned", "running", "ended")
PRESENT, NONE = "present", "none"


@dataclass(frozen=True, kw_only=True)
class GroupRecord(Record):
    id: str
    created_at: str
    agent: dict[str, Any]  # as its folder describes it
    agent_source: str  # what `--agent` was
    agent_command: str | None = None
    competitions: list[str]
    seeds: int
    data_dir: str
    profile: str
    twin: bool
    sandbox: str
    image: str | None = None
    runtime: str | None = None  # of containers
    limits: dict[str, Any]
    gpus_per_run: int = 0
    network: str = "none"
    model: dict[str, Any] | None = None  # what `--network model` leads to
    obfuscate: bool = False
    knowledge: str | None = None
    knowledge_sha256: str | None = None  # of the files in that folder
    retain: bool = False
    workers: int = 1
    machine: dict[str, Any] = field(default_factory=dict)
    like: str | None = None
    executor: dict[str, Any] = field(default_factory=dict)  # its name and options; none: local
    report: str | None = None  # the grading report that counts


@dataclass(frozen=True, kw_only=True)
class RunRecord(Record):
    run_id: str
    competition: str
    seed: int
    state: str = PLANNED
    ended: str | None = None
    detail: str | None = None
    submission: str | None = None
    report: dict[str, Any] | None = None
    attempts: list[dict[str, Any]] = field(default_factory=list)
    starts: int | None = None  # how often an agent was started, in all attempts; None: not recorded
    rerolls: int = 0
    planned_at: str
    started_at: str | None = None
    ended_at: str | None = None
    seconds: float | None = None  # of the agent, in the attempt that counts
    gpu_hours: float | None = None
    model: dict[str, Any] | None = None  # its use of a model, in the attempt that counts
    conditions: dict[str, Any] = field(default_factory=dict)

    @property
    def agent_started_at(self) -> str | None:
        """When the last agent was started, from which snapshots count; older records know only its attempt."""
        attempt = self.attempts[-1] if self.attempts else {}
        return attempt.get("agent_started_at") or self.started_at

    @property
    def is_final(self) -> bool:
        return self.state == ENDED


@dataclass(frozen=True)
class Run:
    """A run's folder and its record."""

    paths: RunPaths
    record: RunRecord

    @classmethod
    def read(cls, folder: Path) -> Self:
        where = RunPaths(folder.absolute())
        return cls(where, RunRecord.read(where.record))

    @property
    def state(self) -> str:
        """The state, except that a run whose process was killed on this host is not running: it is to be done again."""
        if self.record.state == RUNNING and not leases.may_be_held(self.paths.leases):
            return PLANNED
        return self.record.state

    def write(self, **changes: Any) -> "Run":
        """The run with a changed record, written to disk."""
        record = self.record.changed(**changes)
        record.write(self.paths.record)
        return Run(self.paths, record)


@dataclass(frozen=True)
class Group:
    """A run group's folder and its record."""

    paths: GroupPaths
    record: GroupRecord

    @classmethod
    def read(cls, folder: Path) -> Self:
        where = GroupPaths(folder.absolute())
        if not where.record.is_file():
            raise PrerequisiteError(f"{folder} is not a run group: it has no {where.record.name}")
        return cls(where, GroupRecord.read(where.record))

    def runs(self) -> Iterator[Run]:
        """All runs: seed by seed, and by competition within each."""
        order = {id: place for place, id in enumerate(self.record.competitions)}
        with _without_garbage_collection():
            found = list(self._runs_on_disk())
        yield from sorted(found, key=lambda run: (run.record.seed, order.get(run.record.competition, 0)))

    def run_paths(self) -> Iterator[RunPaths]:
        """Where the runs are, without reading them."""
        name = RunPaths(self.paths.root).record.name
        with os.scandir(self.paths.root) as entries:
            for entry in entries:
                if os.path.isfile(f"{entry.path}/{name}"):  # noqa: PTH113 there may be thousands
                    yield RunPaths(Path(entry.path))

    def _runs_on_disk(self) -> Iterator[Run]:
        """There may be tens of thousands, so each file is touched once and few Path objects are made."""
        name = RunPaths(self.paths.root).record.name
        with os.scandir(self.paths.root) as entries:
            for entry in entries:
                where = f"{entry.path}/{name}"
                try:
                    with open(where, "rb", buffering=0) as file:  # noqa: PTH123
                        content = file.readall()
                except (FileNotFoundError, NotADirectoryError):
                    continue
                try:
                    record = RunRecord.parse(content, where)
                except NotJsonError:
                    record = RunRecord.read(Path(where))
                yield Run(RunPaths(Path(entry.path)), record)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Records have no cycles, and looking for some among thousands adds a third to the time of reading them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def find_group(named: str, runs_dir: Path) -> Group:
    """A run group by its path or, in the runs directory, by its name or the beginning of it."""
    if GroupPaths(Path(named)).record.is_file():
        return Group.read(Path(named))
    matches = [where for where in _groups_in(runs_dir) if where.name.startswith(named)]
    if len(matches) == 1:
        return Group.read(matches[0])
    if matches:
        raise PrerequisiteError(
            f"{named!r} is the beginning of {len(matches)} run groups in {runs_dir}: give more of it"
        )
    if os.path.isdir(named):  # noqa: PTH112 a Path would raise for a name that is too long
        held = len(_groups_in(Path(named)))
        hint = f": it holds {held}, name one of them" if held else ""
        raise PrerequisiteError(f"the folder {named} is not a run group{hint}")
    raise PrerequisiteError(f"there is no run group {named!r}, neither as a path nor in {runs_dir}")


def _groups_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(where for where in folder.iterdir() if GroupPaths(where).record.is_file())
