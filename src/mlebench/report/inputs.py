"""Turns run groups, grading reports and tables of experiments into entries, one for each agent."""

import csv
import logging
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mlebench.bundles.reader import Bundle, is_bundle, read_bundle
from mlebench.bundles.verify import require_credible, verdict_on
from mlebench.config import FIRST_PROFILE
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import LFS_POINTER, is_lfs_pointer
from mlebench.core.os_errors import reason_of
from mlebench.core.outcomes import UNGRADED_STATUSES
from mlebench.records.conditions import Conditions, EntryLabel, labels, requests_of
from mlebench.records.findings import Findings, read_findings
from mlebench.records.grading_reports import newest_report, read_grading_report
from mlebench.records.group import GroupRecord
from mlebench.records.reference_groups import is_reference_group
from mlebench.records.report import Report
from mlebench.records.run_groups import Group, Run, find_group, without_garbage_collection
from mlebench.records.snapshots import SnapshotScore, read_snapshot_scores
from mlebench.report.competition_lookup import CompetitionLookup
from mlebench.report.finding_counts import summarize_findings
from mlebench.report.types import TWIN, Entry, ReportedRun, RunOutcome, without_unprintable
from mlebench.report.usage_totals import usage_of

logger = logging.getLogger(__name__)

UNNAMED = "reports"


@dataclass(frozen=True, eq=False)
class _InputRuns:
    """Runs of one agent from one input."""

    agent: str
    reported_runs: list[ReportedRun]
    record: GroupRecord | None = None  # of a run group that states its conditions
    apart: str | None = None  # the bundle or group whose runs are pooled with no others
    bundled: bool = False
    origin: str | None = None  # who wrote the run group, in words, if others did

    @property
    def request(self) -> tuple[Any, ...]:
        return self.agent, self.apart, self.record and requests_of(self.record)


@dataclass(frozen=True)
class _Pool:
    """Runs that form one entry."""

    sources: list[_InputRuns]

    @property
    def agent(self) -> str:
        return self.sources[0].agent

    @cached_property
    def conditions(self) -> Conditions:
        return Conditions([source.record for source in self.sources if source.record])

    @cached_property
    def reported_runs(self) -> list[ReportedRun]:
        return [reported for source in self.sources for reported in source.reported_runs]

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(reported.where for reported in self.reported_runs))

    def entry(self, name: str, label: EntryLabel, lookup: CompetitionLookup) -> Entry:
        seconds = self.conditions.values["time_limit"]
        return Entry(
            agent=name,
            name=self.agent,
            label=label,
            inputs=self.inputs,
            outcomes=tuple(_outcome(reported, seed, lookup) for seed, reported in _numbered(self.reported_runs)),
            model=self.conditions.values["model"],
            hours_limit=seconds / 3600 if seconds else None,
            conditions=self.conditions,
            origin=self.sources[0].origin,
            bundled=self.sources[0].bundled,
        )


@dataclass
class Inputs:
    """Collects the inputs, and groups what belongs to one agent."""

    runs_dir: Path
    more_runs_dirs: tuple[Path, ...] = ()  # where groups are looked for, too
    groups: list[Group] = field(default_factory=list)
    _input_runs: list[_InputRuns] = field(default_factory=list)
    _added_from: dict[Any, str] = field(default_factory=dict)  # files, runs and reports already added, and from where

    def add(self, source: Group | Path | str) -> None:
        """Add a run group, a bundle, a grading report or a folder with one; `NAME=FILE` says whose report it is."""
        if isinstance(source, Group) and not source.record.origin:
            self.add_group(source)
            return
        named = str(source.paths.root if isinstance(source, Group) else source)
        name, equals, file = named.partition("=")
        if is_bundle(Path(named)):
            self.add_bundle(Path(named))
        elif Path(named).is_file():
            self.add_report(Path(named))
        elif equals and Path(file).is_file():
            self.add_report(Path(file), name)
        elif folder := self._graded_folder(named):
            self.add_graded_folder(folder)
        elif equals and (folder := self._graded_folder(file)):
            self.add_graded_folder(folder, name)
        elif equals and not Path(named).exists():
            raise PrerequisiteError(f"there is no grading report {file}")
        elif (group := find_group(named, self.runs_dir, *self.more_runs_dirs)).record.origin:
            self.add_graded_folder(group.paths.root)
        else:
            self.add_group(group)

    def _graded_folder(self, named: str) -> Path | None:
        """A run group of the reference, or a folder with a grading report that is no run group of ours."""
        for folder in (Path(named), *(runs_dir / named for runs_dir in (self.runs_dir, *self.more_runs_dirs))):
            if folder.is_dir() and not paths.GroupPaths(folder).record.is_file():
                return folder if is_reference_group(folder) or newest_report(folder) else None
        return None

    def add_graded_folder(self, folder: Path, name: str | None = None) -> None:
        """Add the newest grading report in a folder: as runs, if it is about those of a run group of the reference."""
        report = newest_report(folder)
        if report is None:
            raise PrerequisiteError(f"{folder} has not been graded: run `mlebench grade {folder}` first")
        group = Group.read(folder) if is_reference_group(folder) else None
        if group and any(run.record.report for run in group.runs()):
            self._refuse_again(report.resolve(), report.name, str(report))
            self.add_group(group, name)
        else:
            self.add_report(report, name or folder.absolute().name)

    def add_report(self, path: Path, name: str | None = None) -> None:
        self._refuse_again(path.resolve(), path.name, str(path))
        reports = read_grading_report(path)
        for identity in {identity for report in reports for identity in _report_identities(report)}:
            self._refuse_again(identity, f"the report on {identity[0]} of {identity[2]}", str(path))
        for report in reports:
            self._take(_InputRuns(without_unprintable(name or report.agent or UNNAMED), [_run_of_report(report, path)]))

    def add_bundle(self, path: Path) -> None:
        """Add a stranger's runs as a separate entry, which says whether they were graded again here."""
        bundle = read_bundle(path)
        trust = require_credible(verdict_on(bundle, self.runs_dir), path)
        agent = bundle.group.record.agent.name
        self.add_group(bundle.group, f"{agent} [{trust}]", bundle=bundle)

    def add_group(self, group: Group, name: str | None = None, *, bundle: Bundle | None = None) -> None:
        """Add a run group. Runs of one agent that were requested under different conditions are separate entries."""
        if bundle is None:  # a bundle has no folder
            self.groups.append(group)
        record = group.record
        with without_garbage_collection():
            reported_runs = [
                _reported_run(run, group, bundle.findings[run.record.run_id] if bundle else read_findings(run))
                for run in group.runs()
            ]
        source = _InputRuns(without_unprintable(name or record.agent.name), reported_runs)
        if bundle:
            source = replace(source, apart=bundle.sha256, bundled=True)
        if record.origin is None:
            source = replace(source, record=record)
        elif not (bundle or name):  # unknown conditions may be any: only a name of the user's pools such groups
            source = replace(source, apart=record.id)
        self._take(replace(source, origin=record.origin_words))

    def add_experiment(self, id: str, table: Path) -> None:
        """The run groups that a table lists under an id: ours, or folders that hold a grading report.

        The id replaces the agent's name. Different conditions are still separate entries, and so are reports, which
        state none.
        """
        for name in groups_of_experiment(id, table):
            folder = self.runs_dir / name
            if paths.GroupPaths(folder).record.is_file():
                self.add_group(Group.read(folder), id)
            elif self._graded_folder(str(folder)):
                self.add_graded_folder(folder, id)
            else:
                raise PrerequisiteError(f"{folder} is not a run group and holds no grading report: see --runs-dir")

    def entries(self, lookup: CompetitionLookup) -> list[Entry]:
        pools = _pools(self._input_runs)
        labels_of = _labels(pools)
        names = _names(pools, labels_of)
        return [pool.entry(name, label, lookup) for pool, name, label in zip(pools, names, labels_of, strict=True)]

    def reported_runs(self) -> list[ReportedRun]:
        return [reported for source in self._input_runs for reported in source.reported_runs]

    def _take(self, source: _InputRuns) -> None:
        for reported in source.reported_runs:
            if run_id := reported.facts.get("run_id"):
                self._refuse_again(run_id, f"run {run_id}", reported.where)
        if source.reported_runs:
            self._input_runs.append(source)

    def _refuse_again(self, what: Any, name: str, where: str) -> None:
        """A run counted twice would pass for two seeds."""
        if what in self._added_from:
            raise PrerequisiteError(f"{name} is given twice: in {self._added_from[what]} and in {where}")
        self._added_from[what] = where


def _pools(sources: Sequence[_InputRuns]) -> list[_Pool]:
    """What was requested under the same conditions, and what had the same conditions whether requested or not."""
    by_request: dict[Any, list[_InputRuns]] = {}
    for source in sources:
        by_request.setdefault(source.request, []).append(source)
    pools: dict[Any, list[_InputRuns]] = {}
    for pool in map(_Pool, by_request.values()):
        key = pool.agent, pool.sources[0].apart, tuple(pool.conditions.keys.values())
        pools.setdefault(key, []).extend(pool.sources)
    order = {source: number for number, source in enumerate(sources)}
    return [_Pool(sorted(pooled, key=order.__getitem__)) for pooled in pools.values()]


def _labels(pools: Sequence[_Pool]) -> list[EntryLabel]:
    """How entries of one agent differ, for each entry."""
    by_agent: dict[str, list[Conditions]] = {}
    for pool in pools:
        by_agent.setdefault(pool.agent, []).append(pool.conditions)
    labels_of = {agent: iter(labels(namesakes)) for agent, namesakes in by_agent.items()}
    return [next(labels_of[pool.agent]) for pool in pools]


def _names(pools: Sequence[_Pool], labels_of: Sequence[EntryLabel]) -> list[str]:
    """A name for each entry that no other has: the agent's and, where several have it, the label."""
    names = [
        ", ".join([pool.agent, *map(without_unprintable, label.texts)])
        for pool, label in zip(pools, labels_of, strict=True)
    ]
    taken = Counter(names)
    return [
        f"{name} ({Path(pool.inputs[0]).name})" if taken[name] > 1 else name
        for pool, name in zip(pools, names, strict=True)
    ]


def groups_of_experiment(id: str, table: Path) -> list[str]:
    try:
        with table.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise PrerequisiteError(f"cannot read {table}: {reason_of(error)}; name another with --table") from error
    if rows and not {"experiment_id", "run_group"} <= rows[0].keys():
        fault = LFS_POINTER if is_lfs_pointer(table.read_bytes()) else "needs the columns experiment_id and run_group"
        raise PrerequisiteError(f"{table} {fault}")
    if not (groups := [row["run_group"] for row in rows if row["experiment_id"] == id]):
        known = ", ".join(dict.fromkeys(row["experiment_id"] for row in rows)) or "none"
        raise PrerequisiteError(f"there is no experiment {id!r} in {table}; it has {known}")
    return groups


def one_kind(reported_runs: Sequence[ReportedRun]) -> tuple[str, str]:
    """The profile of all runs and the kind of their data: `twin`, `real` or `unknown`; refuses to mix them."""
    _refuse_other_data(reported_runs)
    _refuse_mix("profiles", {reported.profile: reported.where for reported in reported_runs})
    releases = {reported.report.release: reported.where for reported in reported_runs if reported.report}
    _refuse_mix("releases of a profile", {release: where for release, where in releases.items() if release})
    _refuse_other_groups(reported_runs)
    with_source = [reported for reported in reported_runs if not _may_lack_source(reported)] or reported_runs
    twins = {"twins" if reported.source == TWIN else "real data": reported.where for reported in with_source}
    _refuse_mix("twins and real data:", twins)
    sources = {reported.source for reported in with_source}
    kind = TWIN if TWIN in sources else "unknown" if "unknown" in sources else "real"
    return reported_runs[0].profile, kind


def _refuse_other_data(reported_runs: Sequence[ReportedRun]) -> None:
    """Refuse scores under one profile of what was made on another's data, with whatever faults that has."""
    for reported in reported_runs:
        if reported.report and (seen := reported.report.seen):
            raise PrerequisiteError(
                f"{reported.where} has a {reported.profile} score of a submission for {reported.competition} that was "
                f"made on {seen}'s data: such scores never enter standings"
            )


def _refuse_other_groups(reported_runs: Sequence[ReportedRun]) -> None:
    """Refuse two groupings of one competition's test rows: the test sets may differ too."""
    first: dict[str, tuple[str, str]] = {}
    for reported in reported_runs:
        if not reported.report or not (groups := reported.report.groups):
            continue
        known, where = first.setdefault(reported.competition, (groups, reported.where))
        if groups != known:
            raise PrerequisiteError(
                f"standings never mix two groupings of the test rows of {reported.competition}: groups.csv is {known} "
                f"in {where}, {groups} in {reported.where}; report on them separately"
            )


def _may_lack_source(reported: ReportedRun) -> bool:
    """Whether nothing was graded in a report, so that it need not name its data."""
    return reported.source == "unknown" and (reported.report is None or reported.report.score is None)


def _refuse_mix(what: str, inputs: dict[str, str]) -> None:
    """Refuse more than one kind of runs; `inputs` names an input for each."""
    if len(inputs) > 1:
        kinds = ", ".join(f"{kind} in {where}" for kind, where in sorted(inputs.items()))
        raise PrerequisiteError(f"standings never mix {what} {kinds}; report on them separately")


def _run_of_report(report: Report, path: Path) -> ReportedRun:
    return ReportedRun(
        competition=report.competition_id,
        where=str(path),
        profile=report.profile or paths.PROFILES[0],
        source=report.source or "unknown",
        report=report,
        seed=report.seed,
        missing=_ungraded_status(report),
        facts={"run_id": report.run_id},
    )


def _report_identities(report: Report) -> Iterator[tuple[str, str, str]]:
    """What identifies a report that names no run, so that a copy of its file is recognised."""
    if report.submission_path is not None and report.created_at is not None and not report.run_id:
        yield report.competition_id, report.submission_path, report.created_at


def _ungraded_status(report: Report) -> str | None:
    return report.status if report.status in UNGRADED_STATUSES else None


def _reported_run(run: Run, group: Group, findings: Iterable[Findings]) -> ReportedRun:
    record = run.record
    report = record.report if record.is_final else None
    source = "unknown" if group.record.twin is None else "real"
    missing = None if report else (record.ended or "not graded" if record.is_final else run.state)
    return ReportedRun(
        competition=record.competition,
        where=group.record.id,
        profile=group.record.profile,
        source=TWIN if group.record.twin else (report and report.source) or source,
        report=report,
        seed=record.seed,
        missing=missing or (report and _ungraded_status(report)),
        facts={
            "run_id": record.run_id,
            "ended": record.ended,
            "hours": None if record.seconds is None else record.seconds / 3600,
            "gpu_hours": record.gpu_hours,
            "starts": record.starts,
            "rerolls": record.rerolls,
            "sealed": record.conditions.sealed,
            **usage_of(record.model),
            "findings": summarize_findings(findings) or None,
            "over_time": _snapshot_scores(run) if record.is_final else None,
        },
    )


def _snapshot_scores(run: Run) -> list[SnapshotScore] | None:
    try:
        return read_snapshot_scores(run)
    except PrerequisiteError as error:
        logger.warning("%s is left out", error)
        return None


def _numbered(reported_runs: Iterable[ReportedRun]) -> list[tuple[int, ReportedRun]]:
    """Seeds are numbered from 0. Without a stated seed, the k-th run of a competition is its k-th seed.

    Groups that split the competitions of one seed among them are merged; a seed that repeats for a competition
    counts as a new one.
    """
    seen: Counter[tuple[str, int | None]] = Counter()
    labelled = []
    for reported in reported_runs:
        again = seen[reported.competition, reported.seed]
        seen[reported.competition, reported.seed] += 1
        stated = reported.seed is not None
        labelled.append(((0, again, reported.seed) if stated else (1, again, 0), reported))
    numbers = {label: number for number, label in enumerate(sorted({label for label, _ in labelled}))}
    return [(numbers[label], reported) for label, reported in labelled]


def _outcome(reported: ReportedRun, seed: int, lookup: CompetitionLookup) -> RunOutcome:
    blank = RunOutcome(reported.competition, seed, reported.where, missing=reported.missing, **reported.facts)
    report = reported.report
    if report is None or reported.missing:
        return blank
    score = report.score
    return replace(
        blank,
        score=score if score is None or math.isfinite(score) else None,
        submitted=bool(report.submission_exists),
        valid=bool(report.valid_submission),
        above_median=bool(report.above_median),
        bronze=_medal(report, report.bronze_medal),
        silver=_medal(report, report.silver_medal),
        gold=_medal(report, report.gold_medal),
        percentile=lookup.percentile(report),
        normalised=None if reported.source == TWIN else lookup.normalised(report),
        test_units=report.test_units,
        badges=lookup.badges(report) if report.score is not None else (),
    )


def _medal(report: Report, earned: bool | None) -> bool | None:
    """Whether a medal was earned; None if it is withheld, which profile v1 never does."""
    return earned if report.profile not in (None, FIRST_PROFILE) else bool(earned)
