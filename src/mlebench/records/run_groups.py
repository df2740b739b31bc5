"""Run groups and runs: their folders, with the records that they hold.

A run whose record is damaged is still a run: it has the state `damaged`, and `fault` says why. It never hides others.
"""

import gc
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from mlebench.core import leases
from mlebench.core.errors import PrerequisiteError
from mlebench.core.os_errors import reason_of
from mlebench.core.paths import GroupPaths, RunPaths
from mlebench.records.base import DamagedRecordError, content_of, parse, read, seconds_of, write
from mlebench.records.group import AgentFacts, GroupRecord, Limits
from mlebench.records.reference_groups import REFERENCE, ReferenceRun, is_reference_group, read_reference_group
from mlebench.records.run import DAMAGED, ENDED, NONE, PLANNED, PRESENT, RUNNING, RunRecord
from mlebench.records.usage import ModelUsage, read_usage

UNKNOWN = "unknown"  # what a group of the reference does not state
_RUN_FOLDER = re.compile(r"(?P<competition>.+)_(?P<run_id>[^_]+)", re.DOTALL)


@dataclass(frozen=True)
class Run:
    """A run's folder and its record. If the record is damaged, a planned one takes its place."""

    paths: RunPaths
    record: RunRecord
    fault: str | None = None  # why the record cannot be read

    @classmethod
    def read(cls, folder: Path) -> Self:
        run_paths = RunPaths(folder.absolute())
        if not run_paths.record.is_file() and is_reference_group(run_paths.group.root):
            for run in Group.read(run_paths.group.root).runs():
                if run.paths.root.name == run_paths.root.name:
                    return cls(run.paths, run.record)
        return cls(run_paths, read(run_paths.record, RunRecord))

    @property
    def state(self) -> str:
        """The state, except that a run whose process was killed on this host is not running: it is to be done again.

        A damaged run that is being worked on is running: whoever works on it will write its record again.
        """
        if self.fault:
            return RUNNING if leases.may_be_held(self.paths.leases) else DAMAGED
        if self.record.state == RUNNING and not leases.may_be_held(self.paths.leases):
            return PLANNED
        return self.record.state

    @property
    def is_settled(self) -> bool:
        """Whether nothing more will happen to it: it has ended, or its record is damaged and nobody works on it."""
        return self.record.is_final or self.state == DAMAGED

    def write(self, **changes: Any) -> "Run":
        """The run with a changed record, written to disk."""
        if self.fault:
            raise DamagedRecordError(self.fault)
        record = self.record.changed(**changes)
        write(self.paths.record, record)
        return Run(self.paths, record)


@dataclass(frozen=True)
class Group:
    """A run group's folder and its record."""

    paths: GroupPaths
    record: GroupRecord

    @classmethod
    def read(cls, folder: Path) -> Self:
        group_paths = GroupPaths(folder.absolute())
        if is_reference_group(folder):
            return cls(group_paths, _record_of_reference(group_paths))
        if not group_paths.record.is_file():
            raise PrerequisiteError(f"{folder} is not a run group: it has no {group_paths.record.name}")
        return cls(group_paths, read(group_paths.record, GroupRecord))

    def runs(self) -> Iterator[Run]:
        """All runs: seed by seed, and by competition within each; those of the reference as it lists them."""
        if self.record.origin == REFERENCE:
            yield from self._runs_of_reference()
            return
        with without_garbage_collection():
            runs = self.in_order(self.with_seeds(list(self._runs_on_disk())))
        yield from runs

    def in_order(self, runs: Iterable[Run]) -> list[Run]:
        order = {id: number for number, id in enumerate(self.record.competitions)}
        return sorted(runs, key=lambda run: (run.record.seed or 0, order.get(run.record.competition, 0)))

    def with_seeds(self, runs: Sequence[Run]) -> Sequence[Run]:
        """Give damaged runs the seeds that no other run of their competition has."""
        if not any(run.fault for run in runs):
            return runs
        taken = {(run.record.competition, run.record.seed) for run in runs if not run.fault}
        seeds = {
            id: iter([seed for seed in range(min(self.record.seeds, len(runs))) if (id, seed) not in taken])
            for id in self.record.competitions
        }
        return [
            Run(run.paths, run.record.changed(seed=next(seeds.get(run.record.competition, iter(())), None)), run.fault)
            if run.fault
            else run
            for run in runs
        ]

    def _runs_of_reference(self) -> Iterator[Run]:
        theirs = read_reference_group(self.paths.root)
        for run in theirs.runs:
            yield Run(run.paths, _run_record_of_reference(run, theirs.created_at))

    def report_fault(self) -> str | None:
        """Why the runs of a group of the reference have no scores although it has a grading report."""
        return read_reference_group(self.paths.root).report_fault if self.record.origin == REFERENCE else None

    def run_paths(self) -> Iterator[RunPaths]:
        """The folders of the runs, without reading their records."""
        if self.record.origin == REFERENCE:
            yield from (run.paths for run in read_reference_group(self.paths.root).runs)
            return
        name = RunPaths(self.paths.root).record.name
        for entry in self._folders():
            if os.path.isfile(f"{entry.path}/{name}") or self._planned(entry):  # noqa: PTH113 there may be thousands
                yield RunPaths(Path(entry.path))

    def _folders(self) -> Iterator[os.DirEntry[str]]:
        with os.scandir(self.paths.root) as entries:
            yield from (entry for entry in entries if not entry.name.startswith("."))

    def _runs_on_disk(self) -> Iterator[Run]:
        """There may be tens of thousands, so each file is touched once and few Path objects are made."""
        name = RunPaths(self.paths.root).record.name
        for entry in self._folders():
            file = f"{entry.path}/{name}"
            try:
                record = _read_quickly(file)
                if record.competition not in self.record.competitions:
                    raise DamagedRecordError(f"{file}: `competition` is none of the group's")
                yield Run(RunPaths(Path(entry.path)), record)
            except (PrerequisiteError, OSError) as error:
                if match := self._planned(entry):  # other folders are none of ours
                    yield _damaged(entry.path, match, _fault(error, file))

    def _planned(self, entry: os.DirEntry[str]) -> re.Match[str] | None:
        """A folder that was planned as a run, by its name."""
        match = _RUN_FOLDER.fullmatch(entry.name)
        return match if match and match["competition"] in self.record.competitions and entry.is_dir() else None


def _read_quickly(file: str) -> RunRecord:
    try:
        return parse(content_of(file), RunRecord, file)
    except DamagedRecordError:
        return read(Path(file), RunRecord)  # it may just have been replaced


def _fault(error: Exception, file: str) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"there is no {file}"
    return f"cannot read {file}: {reason_of(error)}" if isinstance(error, OSError) else str(error)


def read_run(folder: Path) -> Run:
    """The run in a folder, also if its record is damaged or missing."""
    try:
        return Run.read(folder)
    except (PrerequisiteError, OSError) as error:
        file = str(RunPaths(folder).record)
        return _damaged(str(folder.absolute()), _RUN_FOLDER.fullmatch(folder.name), _fault(error, file))


def _damaged(folder: str, name: re.Match[str] | None, fault: str) -> Run:
    paths = RunPaths(Path(folder))
    competition, run_id = (name["competition"], name["run_id"]) if name else (paths.root.name, paths.root.name)
    record = RunRecord(run_id=run_id, competition=competition, seed=None, planned_at=None, detail=fault)
    return Run(paths, record, fault)


def _record_of_reference(group_paths: GroupPaths) -> GroupRecord:
    theirs = read_reference_group(group_paths.root)
    return GroupRecord(
        id=group_paths.root.name,
        origin=REFERENCE,
        created_at=theirs.created_at,
        agent=AgentFacts(name=theirs.agent or UNKNOWN),
        agent_source=UNKNOWN,
        competitions=theirs.competitions,
        seeds=theirs.seeds,
        data_dir=None,
        profile=theirs.profile,
        twin=theirs.twin,
        sandbox=UNKNOWN,
        limits=None,
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


def limits_of(group: Group) -> Limits:
    """The limits of a group's runs, which groups of ours always state."""
    if group.record.limits is None:
        raise DamagedRecordError(f"{group.paths.record} states no `limits`")
    return group.record.limits


def require_ours(group: Group) -> None:
    """Refuse to carry out runs of a group that does not say how."""
    if group.record.origin == REFERENCE:
        raise PrerequisiteError(
            f"{group.paths.root} was written by the reference, which does not record how to carry out its runs: "
            f"start a new group with `mlebench run`"
        )


@contextmanager
def without_garbage_collection() -> Iterator[None]:
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
    matches = [match for folder in runs_dirs for match in _groups_in(folder) if match.name.startswith(named)]
    matches = [where for where in matches if where.name == named][:1] or matches
    if len(matches) == 1:
        return Group.read(matches[0])
    if matches:
        folders = " and ".join(dict.fromkeys(str(where.parent) for where in matches))
        raise PrerequisiteError(
            f"{named!r} is the beginning of {len(matches)} run groups in {folders}: give more of it"
        )
    if os.path.isdir(named):  # noqa: PTH112 a Path would raise for a name that is too long
        count = len(_groups_in(Path(named)))
        hint = f": it holds {count}, name one of them" if count else ""
        raise PrerequisiteError(f"the folder {named} is not a run group{hint}")
    folders = " or ".join(map(str, runs_dirs))
    raise PrerequisiteError(
        f"there is no run group {named!r}, neither as a path nor in {folders}; `mlebench runs` lists them"
    )


def _groups_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if is_group(path))


def is_group(folder: Path) -> bool:
    """Whether a folder is a run group, ours or the reference's."""
    return GroupPaths(folder).record.is_file() or is_reference_group(folder)


def _ignore(_fault: str) -> None:
    pass


def groups_in(runs_dir: Path, on_fault: Callable[[str], None] = _ignore) -> list[Group]:
    """The run groups of a runs directory, newest first; unreadable ones are skipped, and `on_fault` is told why."""
    groups = []
    for folder in sorted(runs_dir.iterdir(), reverse=True) if runs_dir.is_dir() else ():
        if is_group(folder):
            try:
                groups.append(Group.read(folder))
            except PrerequisiteError as error:
                on_fault(f"Not shown: {error}")
    return groups


def newest_group(*runs_dirs: Path, on_fault: Callable[[str], None] = _ignore) -> Group | None:
    """The run group that was started last, in any of the runs directories."""
    groups = [group for runs_dir in runs_dirs for group in groups_in(runs_dir, on_fault)]
    return max(groups, key=lambda group: group.record.created_at or "", default=None)


def counts(group: Group) -> dict[str, int]:
    """How many runs a group has, in total and in each state."""
    runs = list(group.runs())
    records = [run.record for run in runs]
    return {
        "runs": len(records),
        "ended": sum(record.is_final for record in records),
        "running": sum(run.state == RUNNING for run in runs),
        "submitted": sum(record.submission == PRESENT for record in records),
        "medals": sum(bool(record.report and record.report.any_medal) for record in records),
    }


def unfinished(group: Group) -> list[Path]:
    """The folders of the runs that have not ended; nothing can be done about damaged ones."""
    return [run.paths.root for run in group.runs() if not run.is_settled]


def elapsed(run: Run) -> float | None:
    """Seconds since the agent of a run in progress was started, which its time limit counts from."""
    started = seconds_of(run.record.agent_started_at)
    if run.state != RUNNING or started is None:
        return None
    return max(0.0, time.time() - started)  # its host's clock may be ahead


def usage_so_far(run: Run) -> ModelUsage | None:
    """A run's use of a model, final or so far."""
    if run.record.is_final or not (attempt := run.record.last_attempt):
        return run.record.model
    return read_usage(run.paths.group.work(attempt.token))
