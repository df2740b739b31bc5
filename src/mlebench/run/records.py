"""The records of a run group and of each of its runs. docs/runs.md explains every field.

A group's record says what was asked for and does not change, except for the report that counts. A run's record is
replaced at each step; what all runs of a group share is in the group's.
"""

import gc
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from mlebench import lease as leases
from mlebench.errors import PrerequisiteError
from mlebench.paths import GroupPaths, RunPaths
from mlebench.records import NotJsonError, Record
from mlebench.run.reference_groups import REFERENCE, ReferenceRun, is_reference_group, read_reference_group

PLANNED, RUNNING, ENDED = STATES = ("planned", "running", "ended")
PRESENT, NONE = "present", "none"
UNKNOWN = "unknown"  # what a group of the reference does not state


@dataclass(frozen=True, kw_only=True)
class GroupRecord(Record):
    id: str
    origin: str | None = None  # REFERENCE: it was written by the reference, and what it does not state is unknown
    created_at: str | None
    agent: dict[str, Any]  # as its folder describes it
    agent_source: str  # what `--agent` was
    agent_command: str | None = None
    agent_options: dict[str, str] = field(default_factory=dict)  # what `--agent-option` set
    competitions: list[str]
    seeds: int
    data_dir: str | None
    profile: str
    twin: bool | None
    sandbox: str
    image: str | None = None
    runtime: str | None = None  # of containers
    limits: dict[str, Any]
    requested: dict[str, Any] | None = None  # of limits and sandbox, what the machine did not decide; None: unknown
    gpus_per_run: int | None = 0
    runs_per_gpu: int = 1
    network: str = "none"
    model: dict[str, Any] | None = None  # what `--network model` leads to
    obfuscate: bool | None = False
    knowledge: str | None = None
    knowledge_sha256: str | None = None  # of the files in that folder
    retain: bool | None = False
    workers: int | None = 1
    machine: dict[str, Any] = field(default_factory=dict)
    like: str | None = None
    executor: dict[str, Any] = field(default_factory=dict)  # its name and options; none: local
    report: str | None = None  # the grading report that counts

    @property
    def origin_words(self) -> str | None:
        """Who wrote the group, if others did."""
        return f"written by the {self.origin}" if self.origin else None


@dataclass(frozen=True, kw_only=True)
class RunRecord(Record):
    run_id: str
    competition: str
    seed: int | None
    state: str = PLANNED
    ended: str | None = None
    detail: str | None = None
    submission: str | None = None
    report: dict[str, Any] | None = None
    attempts: list[dict[str, Any]] = field(default_factory=list)
    starts: int | None = None  # how often an agent was started, in all attempts; None: not recorded
    rerolls: int | None = 0
    planned_at: str | None
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
        if not where.record.is_file() and is_reference_group(where.group.root):
            for run in Group.read(where.group.root).runs():
                if run.paths.root.name == where.root.name:
                    return cls(run.paths, run.record)
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
        if is_reference_group(folder):
            return cls(where, _record_of_reference(where))
        if not where.record.is_file():
            raise PrerequisiteError(f"{folder} is not a run group: it has no {where.record.name}")
        return cls(where, GroupRecord.read(where.record))

    def runs(self) -> Iterator[Run]:
        """All runs: seed by seed, and by competition within each; those of the reference as it lists them."""
        if self.record.origin == REFERENCE:
            yield from self._runs_of_reference()
            return
        with _without_garbage_collection():
            found = list(self._runs_on_disk())
        yield from self.in_order(found)

    def in_order(self, runs: Iterable[Run]) -> list[Run]:
        order = {id: place for place, id in enumerate(self.record.competitions)}
        return sorted(runs, key=lambda run: (run.record.seed or 0, order.get(run.record.competition, 0)))

    def _runs_of_reference(self) -> Iterator[Run]:
        theirs = read_reference_group(self.paths.root)
        for run in theirs.runs:
            yield Run(run.paths, _run_record_of_reference(run, theirs.created_at))

    def report_fault(self) -> str | None:
        """Why the runs of a group of the reference have no scores although it has a grading report."""
        return read_reference_group(self.paths.root).report_fault if self.record.origin == REFERENCE else None

    def run_paths(self) -> Iterator[RunPaths]:
        """Where the runs are, without reading them."""
        if self.record.origin == REFERENCE:
            yield from (run.paths for run in read_reference_group(self.paths.root).runs)
            return
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


def _record_of_reference(where: GroupPaths) -> GroupRecord:
    theirs = read_reference_group(where.root)
    return GroupRecord(
        id=where.root.name,
        origin=REFERENCE,
        created_at=theirs.created_at,
        agent={"name": theirs.agent or UNKNOWN, "identity": None, "model": None},
        agent_source=UNKNOWN,
        competitions=theirs.competitions,
        seeds=theirs.seeds,
        data_dir=None,
        profile=theirs.profile,
        twin=theirs.twin,
        sandbox=UNKNOWN,
        limits={},
        gpus_per_run=None,
        network=UNKNOWN,
        obfuscate=None,
        retain=None,
        workers=None,
        report=theirs.report,
    )


def _run_record_of_reference(run: ReferenceRun, planned_at: str | None) -> RunRecord:
    """Its end is unknown: the reference only knows whether it could carry the run out, not how the agent ended."""
    return RunRecord(
        run_id=run.run_id,
        competition=run.competition,
        seed=None,
        state=ENDED,
        detail="the reference says that this run failed" if run.failed else None,
        submission=PRESENT if run.submitted else NONE,
        report=run.report,
        rerolls=None,
        planned_at=planned_at,
    )


def require_ours(group: Group) -> None:
    """Refuse to carry out runs of a group that does not say how."""
    if group.record.origin == REFERENCE:
        raise PrerequisiteError(
            f"{group.paths.root} was written by the reference, which does not record how to carry out its runs: "
            f"start a new group with `mlebench run`"
        )


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


def find_group(named: str, *runs_dirs: Path) -> Group:
    """A run group by its path or, in the runs directories, by its name or the beginning of it.

    Of two groups with this very name, the one in the first directory is meant.
    """
    if is_group(Path(named)):
        return Group.read(Path(named))
    matches = [where for folder in runs_dirs for where in _groups_in(folder) if where.name.startswith(named)]
    matches = [where for where in matches if where.name == named][:1] or matches
    if len(matches) == 1:
        return Group.read(matches[0])
    if matches:
        folders = " and ".join(dict.fromkeys(str(where.parent) for where in matches))
        raise PrerequisiteError(
            f"{named!r} is the beginning of {len(matches)} run groups in {folders}: give more of it"
        )
    if os.path.isdir(named):  # noqa: PTH112 a Path would raise for a name that is too long
        held = len(_groups_in(Path(named)))
        hint = f": it holds {held}, name one of them" if held else ""
        raise PrerequisiteError(f"the folder {named} is not a run group{hint}")
    folders = " or ".join(map(str, runs_dirs))
    raise PrerequisiteError(f"there is no run group {named!r}, neither as a path nor in {folders}")


def _groups_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(where for where in folder.iterdir() if is_group(where))


def is_group(folder: Path) -> bool:
    """Whether a folder is a run group, ours or the reference's."""
    return GroupPaths(folder).record.is_file() or is_reference_group(folder)
