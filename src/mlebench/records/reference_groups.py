"""Run groups that the reference wrote, read as they are: metadata.json lists the runs, each of which has a folder.

They state little: which runs there were, and which of them the reference itself could not carry out. Scores are in a
grading report beside metadata.json, if somebody has graded the group. All of it may come from a stranger.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import LFS_POINTER, is_lfs_pointer
from mlebench.core.outcomes import GRADED, INVALID, MISSING
from mlebench.core.paths import PROFILES, GroupPaths, RunPaths, time_in
from mlebench.core.untrusted import UntrustedFileError, open_untrusted
from mlebench.records.grading_reports import newest_report, read_grading_report
from mlebench.records.report import Report

REFERENCE = "reference"
# What its reports always state, besides the score.
STATED = (
    "gold_threshold", "silver_threshold", "bronze_threshold", "median_threshold",
    "any_medal", "gold_medal", "silver_medal", "bronze_medal", "above_median",
    "submission_exists", "valid_submission", "is_lower_better", "created_at",
)  # fmt: skip
LARGEST_METADATA = 64 << 20  # bytes
_AGENT = re.compile(r".*_run-group_(\w[\w./@+-]{0,99})", re.DOTALL)  # the end of a group's name


@dataclass(frozen=True)
class ReferenceRun:
    """What is known about a run."""

    paths: RunPaths
    competition: str
    run_id: str
    failed: bool  # the reference says so
    submitted: bool
    report: Report | None = None


@dataclass(frozen=True)
class ReferenceGroup:
    """What is known about a group; None where nothing says so."""

    runs: tuple[ReferenceRun, ...]
    agent: str | None
    created_at: str | None
    report: str | None  # the name of the newest grading report
    report_fault: str | None  # why the runs have no reports although there is one

    @property
    def competitions(self) -> list[str]:
        return list(dict.fromkeys(run.competition for run in self.runs))

    @property
    def seeds(self) -> int:
        """How many runs a competition has, at most."""
        return max(Counter(run.competition for run in self.runs).values(), default=0)

    @property
    def twin(self) -> bool | None:
        """Whether the data are twins; only reports of ours say so."""
        sources = {run.report.source for run in self.runs if run.report} - {"unknown", None}
        return "twin" in sources if sources else None

    @property
    def profile(self) -> str:
        """The reference has one profile; reports of ours may state another."""
        stated = {run.report.profile or PROFILES[0] for run in self.runs if run.report}
        return stated.pop() if len(stated) == 1 else PROFILES[0]


def is_reference_group(folder: Path) -> bool:
    """Whether a folder looks like a run group of the reference, not like one of ours whose planning was interrupted."""
    group_paths = GroupPaths(folder)
    if group_paths.record.is_file() or not group_paths.metadata.is_file():
        return False
    return next(folder.glob(f"*/{RunPaths(folder).record.name}"), None) is None


def read_reference_group(folder: Path) -> ReferenceGroup:
    """What a group states, with the scores of its newest grading report; PrerequisiteError if it is damaged."""
    group_paths = GroupPaths(folder)
    data = _metadata(group_paths)
    runs = [_run(group_paths, name, outcome) for name, outcome in data["runs"].items()]
    name = data.get("run_group")
    name = name if isinstance(name, str) else folder.name
    stated = data.get("created_at")
    agent = _AGENT.fullmatch(name)
    path = newest_report(folder)
    reports, fault = ({}, None) if path is None else _reports(path, runs)
    return ReferenceGroup(
        runs=tuple(ReferenceRun(**{**vars(run), "report": reports.get(run.paths.root.name)}) for run in runs),
        agent=agent[1] if agent else None,
        created_at=time_in(name) or (time_in(stated) if isinstance(stated, str) else None),
        report=path and path.name,
        report_fault=fault,
    )


def _metadata(group_paths: GroupPaths) -> dict[str, Any]:
    path = group_paths.metadata
    try:
        with open_untrusted(group_paths.root.resolve() / path.name, LARGEST_METADATA) as file:
            content = file.read()
    except UntrustedFileError as error:
        raise PrerequisiteError(f"{path} {error}") from None
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        fault = LFS_POINTER if is_lfs_pointer(content) else f"is not JSON: {error}"
        raise PrerequisiteError(f"{path} {fault}") from None
    if not isinstance(data, dict) or not isinstance(data.get("runs"), dict):
        raise PrerequisiteError(f"{group_paths.root} is not a run group: its {path.name} lists no `runs`")
    return data


def _run(group_paths: GroupPaths, name: str, outcome: Any) -> ReferenceRun:
    competition, _, run_id = name.rpartition("_")
    is_name = name.isprintable() and "/" not in name and len(name.encode()) < 256
    if not (competition and run_id and is_name):
        raise PrerequisiteError(f"{group_paths.metadata} names a run {ascii(name)[:80]}, not <competition>_<id>")
    run = group_paths.run(competition, run_id)
    if run.root.is_symlink():
        raise PrerequisiteError(f"{run.root} is a symbolic link, which is not followed: put the run's folder there")
    failed = isinstance(outcome, dict) and outcome.get("success") is False
    return ReferenceRun(run, competition, run_id, failed, _has_submission(run))


def _has_submission(run: RunPaths) -> bool:
    steps = (run.submission.parent, run.submission)
    return run.submission.is_file() and not any(step.is_symlink() for step in steps)


def _reports(path: Path, runs: Sequence[ReferenceRun]) -> tuple[dict[str, Report], str | None]:
    """The report on each run, by the name of its folder; none if one of them is about something else, and why."""
    try:
        rows = [_complete(row, path) for row in read_grading_report(path)]
    except PrerequisiteError as error:
        return {}, str(error)
    reports: dict[str, Report] = {}
    for row in sorted(rows, key=lambda row: not row.submission_exists):  # the others may name no file
        name = next((name for name in _candidates(row, runs) if name not in reports), None)
        if name is None:
            return {}, f"{path} is about other files than the submissions of these runs"
        reports[name] = row
    return reports, None


def _complete(row: Report, path: Path) -> Report:
    """A report with everything that the reference states and, if it is the reference's, what follows from that."""
    if any(getattr(row, name) is None for name in STATED):
        raise PrerequisiteError(f"{path} holds a report that lacks a field")
    status = GRADED if row.valid_submission else INVALID if row.submission_exists else MISSING
    return msgspec.structs.replace(
        row, status=row.status or status, profile=row.profile or PROFILES[0], source=row.source or "unknown"
    )


def _candidates(row: Report, runs: Sequence[ReferenceRun]) -> list[str]:
    """The runs that a report may be about: the one it names or, if there was no submission, any without one."""
    runs = [run for run in runs if run.competition == row.competition_id]
    folder = PurePosixPath(str(row.submission_path)).parts[-3:-2]
    named = [run for run in runs if row.run_id == run.run_id or folder == (run.paths.root.name,)]
    if not named and row.run_id is None and not row.submission_exists:
        named = [run for run in runs if not run.submitted]
    return [run.paths.root.name for run in named]
