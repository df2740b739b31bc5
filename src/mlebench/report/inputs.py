"""Turns run groups, grading reports and tables of experiments into entries, one for each agent."""

import csv
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mlebench import paths
from mlebench.bundles.reading import Bundle, is_bundle, read_bundle
from mlebench.bundles.verify import require_credible, verdict_on
from mlebench.errors import PrerequisiteError
from mlebench.faults import reason_of
from mlebench.outcomes import UNGRADED_STATUSES
from mlebench.report.boards import Boards
from mlebench.report.found import told_of
from mlebench.report.model import TWIN, Entry, Outcome, Reading
from mlebench.report.spent import model_use
from mlebench.run import knowledge
from mlebench.run.findings import Findings, read_findings
from mlebench.run.over_time import read_over_time
from mlebench.run.records import Group, GroupRecord, Run, find_group

UNNAMED = "reports"


@dataclass
class Inputs:
    """Collects the inputs, and groups what belongs to one agent."""

    runs_dir: Path
    groups: list[Group] = field(default_factory=list)
    _readings: dict[tuple[Any, ...], list[Reading]] = field(default_factory=dict)
    _labels: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)
    _given: dict[Any, str] = field(default_factory=dict)  # files, runs and reports already added, and from where

    def add(self, named: str) -> None:
        """Add a run group, a bundle or a grading report; `NAME=FILE` says whose report it is."""
        name, equals, file = named.partition("=")
        if is_bundle(Path(named)):
            self.add_bundle(Path(named))
        elif Path(named).is_file():
            self.add_report(Path(named))
        elif equals and Path(file).is_file():
            self.add_report(Path(file), name)
        elif equals and not Path(named).exists():
            raise PrerequisiteError(f"there is no grading report {file}")
        else:
            self.add_group(find_group(named, self.runs_dir))

    def add_report(self, path: Path, name: str | None = None) -> None:
        self._refuse_again(path.resolve(), path.name, str(path))
        reports = read_grading_report(path)
        for graded in {one for report in reports for one in _graded(report)}:
            self._refuse_again(graded, f"the report on {graded[0]} of {graded[2]}", str(path))
        for report in reports:
            agent = name or report.get("agent") or UNNAMED
            self._take((agent,), _reading_of_report(report, path), agent=agent)

    def add_bundle(self, path: Path) -> None:
        """Add a stranger's runs as a separate entry, which says whether they were graded again here."""
        bundle = read_bundle(path)
        trust = require_credible(verdict_on(bundle, self.runs_dir), path)
        agent = bundle.group.record.agent["name"]
        self.add_group(bundle.group, f"{agent} [{trust}]", bundle=bundle)

    def add_group(self, group: Group, name: str | None = None, *, bundle: Bundle | None = None) -> None:
        """Add a run group. Runs of one agent under different conditions are separate entries."""
        if bundle is None:  # a bundle has no folder
            self.groups.append(group)
        record = group.record
        agent = name or record.agent.get("name", record.agent_source)
        hours = record.limits.get("seconds")
        hours = hours / 3600 if hours else None
        asked = record.model or {}
        model = ", ".join(asked.get("models", [])) or record.agent.get("model")
        conditions = _conditions(record)
        folder = record.knowledge_sha256 or record.knowledge  # a changed folder counts as another one
        others = [value for what, value in conditions.items() if what not in knowledge.conditions(record)]
        key = (name, bundle.sha256) if bundle else (name, agent, hours, model, folder, *others)
        for run in group.runs():
            reading = _reading_of_run(run, group, bundle.findings[run.record.run_id] if bundle else read_findings(run))
            self._take(
                key, reading, agent=agent, model=model, hours_limit=hours, conditions=conditions, bundled=bool(bundle)
            )

    def add_experiment(self, id: str, table: Path) -> None:
        """The run groups that a table lists under an id: ours, or folders that hold a grading report.

        The id replaces the agent's name. Different conditions are still separate entries, and so are reports, which
        state none.
        """
        for name in groups_of_experiment(id, table):
            folder = self.runs_dir / name
            if paths.GroupPaths(folder).record.is_file():
                self.add_group(Group.read(folder), id)
                continue
            found = sorted(folder.glob(f"*{paths.GRADING_REPORT}"))
            if not found:
                raise PrerequisiteError(f"{folder} is not a run group and holds no grading report: see --runs-dir")
            self.add_report(found[-1], id)

    def entries(self, boards: Boards) -> list[Entry]:
        names = Counter(label["agent"] for label in self._labels.values())
        entries = []
        for key, readings in self._readings.items():
            label = dict(self._labels[key])
            inputs = tuple(dict.fromkeys(reading.where for reading in readings))
            label["name"] = label["agent"]
            if names[label["agent"]] > 1:
                label["agent"] += f" ({Path(inputs[0]).name})"
            outcomes = tuple(_outcome(reading, seed, boards) for seed, reading in _numbered(readings))
            entries.append(Entry(inputs=inputs, outcomes=outcomes, **label))
        return entries

    def readings(self) -> list[Reading]:
        return [reading for readings in self._readings.values() for reading in readings]

    def _take(self, key: tuple[Any, ...], reading: Reading, **label: Any) -> None:
        if run_id := reading.facts.get("run_id"):
            self._refuse_again(run_id, f"run {run_id}", reading.where)
        self._readings.setdefault(key, []).append(reading)
        self._labels.setdefault(key, label | {"agent": _printable(label["agent"])})

    def _refuse_again(self, what: Any, name: str, where: str) -> None:
        """A run counted twice would pass for two seeds."""
        if what in self._given:
            raise PrerequisiteError(f"{name} is given twice: in {self._given[what]} and in {where}")
        self._given[what] = where


def _conditions(record: GroupRecord) -> dict[str, Any]:
    asked = record.model or {}
    return {
        "agent": record.agent.get("name"),
        "identity": record.agent.get("identity"),
        "network": record.network,
        "description": "obfuscated" if record.obfuscate else "named",
        **knowledge.conditions(record),
        "cpus": record.limits.get("cpus"),
        "gpus": record.gpus_per_run,
        "budget": asked.get("budget"),
        "tools": tuple(asked.get("tools", ())),
        "fields": tuple(asked.get("fields", ())),
    }


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in str(text))


def read_grading_report(path: Path) -> list[dict[str, Any]]:
    """The reports of single submissions that a grading report holds: ours, or the reference's."""
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise PrerequisiteError(f"cannot read {path}: {reason_of(error)}") from error
    except (ValueError, RecursionError) as error:
        raise PrerequisiteError(f"{path} is not JSON: {error}") from None
    reports = data.get("competition_reports") if isinstance(data, dict) else None
    if not isinstance(reports, list):
        raise PrerequisiteError(f"{path} is not a grading report: it has no list `competition_reports`")
    for number, report in enumerate(reports, 1):
        if not isinstance(report, dict) or not _can_be_an_id(report.get("competition_id")):
            raise PrerequisiteError(f"{path}: report {number} names no competition")
        for what, (fits, names) in _FIELDS.items():
            for name in names:
                if report.get(name) is not None and not fits(report[name]):
                    raise PrerequisiteError(f"{path}: in report {number}, {name} is not {what}")
    return reports


def _can_be_an_id(value: Any) -> bool:
    """Whether a competition's folder could have this name."""
    return isinstance(value, str) and 0 < len(value.encode("utf-8", "replace")) < 256 and not _is_broken(value)


def _is_broken(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)  # no file can hold it


def _is_number(value: Any) -> bool:
    if not isinstance(value, int):
        return isinstance(value, float)
    return not isinstance(value, bool) and abs(value) <= sys.float_info.max


# What standings read of a report. A flag written as text, such as "False", would count as true.
_FIELDS: dict[str, tuple[Callable[[Any], bool], tuple[str, ...]]] = {
    "a number": (_is_number, ("score", "gold_threshold", "percentile")),
    "text": (
        lambda value: isinstance(value, str) and not _is_broken(value),
        ("agent", "profile", "source", "status", "run_id"),
    ),
    "true or false": (
        lambda value: isinstance(value, bool),
        ("submission_exists", "valid_submission", "above_median", "bronze_medal", "silver_medal", "gold_medal"),
    ),
}


def groups_of_experiment(id: str, table: Path) -> list[str]:
    try:
        with table.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise PrerequisiteError(f"cannot read {table}: {reason_of(error)}; name another with --table") from error
    if rows and not {"experiment_id", "run_group"} <= rows[0].keys():
        raise PrerequisiteError(f"{table} needs the columns experiment_id and run_group")
    if not (found := [row["run_group"] for row in rows if row["experiment_id"] == id]):
        known = ", ".join(dict.fromkeys(row["experiment_id"] for row in rows)) or "none"
        raise PrerequisiteError(f"there is no experiment {id!r} in {table}; it has {known}")
    return found


def one_kind(readings: Sequence[Reading]) -> tuple[str, str]:
    """The profile of all runs and the kind of their data: `twin`, `real` or `unknown`; refuses to mix them."""
    _refuse_mix("profiles", {reading.profile: reading.where for reading in readings})
    telling = [reading for reading in readings if not _tells_no_source(reading)] or readings
    twins = {"twins" if reading.source == TWIN else "real data": reading.where for reading in telling}
    _refuse_mix("twins and real data:", twins)
    sources = {reading.source for reading in telling}
    kind = TWIN if TWIN in sources else "unknown" if "unknown" in sources else "real"
    return readings[0].profile, kind


def _tells_no_source(reading: Reading) -> bool:
    """Whether nothing was graded in a report, so that it need not name its data."""
    return reading.source == "unknown" and (reading.report or {}).get("score") is None


def _refuse_mix(what: str, places: dict[str, str]) -> None:
    if len(places) > 1:
        found = ", ".join(f"{kind} in {where}" for kind, where in sorted(places.items()))
        raise PrerequisiteError(f"standings never mix {what} {found}; report on them separately")


def _reading_of_report(report: dict[str, Any], path: Path) -> Reading:
    seed = report.get("seed")
    return Reading(
        competition=report["competition_id"],
        where=str(path),
        profile=report.get("profile") or paths.PROFILES[0],
        source=report.get("source") or "unknown",
        report=report,
        seed=seed if isinstance(seed, int) else None,
        missing=_fault(report),
        facts={"run_id": report.get("run_id")},
    )


def _graded(report: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What identifies a report that names no run, so that a copy of its file is recognised."""
    path, time = report.get("submission_path"), report.get("created_at")
    if isinstance(path, str) and isinstance(time, str) and not report.get("run_id"):
        yield report["competition_id"], path, time


def _fault(report: dict[str, Any]) -> str | None:
    status = report.get("status")
    return status if status in UNGRADED_STATUSES else None


def _reading_of_run(run: Run, group: Group, found: Iterable[Findings]) -> Reading:
    record = run.record
    report = record.report if record.is_final else None
    missing = None if report else (record.ended if record.is_final else record.state)
    return Reading(
        competition=record.competition,
        where=group.record.id,
        profile=group.record.profile,
        source=TWIN if group.record.twin else (report or {}).get("source", "real"),
        report=report,
        seed=record.seed,
        missing=missing or _fault(report or {}),
        facts={
            "run_id": record.run_id,
            "ended": record.ended,
            "hours": None if record.seconds is None else record.seconds / 3600,
            "gpu_hours": record.gpu_hours,
            "starts": record.starts,
            "rerolls": record.rerolls,
            "sealed": record.conditions.get("sealed"),
            **model_use(record.model),
            "findings": told_of(found) or None,
            "over_time": read_over_time(run) if record.is_final else None,
        },
    )


def _numbered(readings: Iterable[Reading]) -> list[tuple[int, Reading]]:
    """Seeds are numbered from 0. Without a stated seed, the k-th run of a competition is its k-th seed.

    Groups that split the competitions of one seed among them are merged; a seed that repeats for a competition
    counts as a new one.
    """
    seen: Counter[tuple[str, int | None]] = Counter()
    labelled = []
    for reading in readings:
        again = seen[reading.competition, reading.seed]
        seen[reading.competition, reading.seed] += 1
        stated = reading.seed is not None
        labelled.append(((0, again, reading.seed) if stated else (1, again, 0), reading))
    places = {label: place for place, label in enumerate(sorted({label for label, _ in labelled}))}
    return [(places[label], reading) for label, reading in labelled]


def _outcome(reading: Reading, seed: int, boards: Boards) -> Outcome:
    blank = Outcome(reading.competition, seed, reading.where, missing=reading.missing, **reading.facts)
    report = reading.report
    if report is None or reading.missing:
        return blank
    score = report.get("score")
    return replace(
        blank,
        score=score if score is None or math.isfinite(score) else None,
        submitted=bool(report.get("submission_exists")),
        valid=bool(report.get("valid_submission")),
        above_median=bool(report.get("above_median")),
        bronze=bool(report.get("bronze_medal")),
        silver=bool(report.get("silver_medal")),
        gold=bool(report.get("gold_medal")),
        percentile=boards.percentile(report),
        normalised=None if reading.source == TWIN else boards.normalised(report),
    )
