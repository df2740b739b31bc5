"""Grades the submissions that a file lists; one that cannot be graded does not stop the others."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import LFS_POINTER, is_lfs_pointer
from mlebench.core.os_errors import reason_of
from mlebench.core.outcomes import UNGRADED_STATUSES
from mlebench.core.paths import grading_report, timestamp
from mlebench.grade.in_process import GradingJob, Ungraded
from mlebench.grade.limits import DEFAULT_LIMITS, Limits
from mlebench.grade.submission import Workers
from mlebench.registry import Registry
from mlebench.registry import registry as default_registry
from mlebench.scoring import CompetitionReport, RunInfo

logger = logging.getLogger(__name__)


class SubmissionLine(NamedTuple):
    """A line that names a submission; if it cannot be graded, `fault` says why."""

    line: int
    competition_id: str | None
    path: str
    fault: str | None = None
    run: RunInfo | None = None
    seed: int | None = None
    fault_status: str = "bad_entry"


Tracker = Callable[[list[SubmissionLine]], Iterable[SubmissionLine]]


def grade_jsonl(
    path_to_submissions: Path,
    output_dir: Path,
    registry: Registry = default_registry,
    track: Tracker = iter,
    *,
    jobs: int = 1,
    limits: Limits = DEFAULT_LIMITS,
    interval: bool = False,
) -> dict[str, Any]:
    """Grade the submissions that a JSON-lines file names; write `<timestamp>_grading_report.json` and return it.

    `jobs` submissions are graded at a time; reports are in the order of the lines. Lines that name no submission, or no
    existing competition, are listed as `unjudged`. `track` is given the lines and yields each when it is waited for.
    """
    entries = read_entries(Path(path_to_submissions))
    if not entries:
        logger.warning("Warning: %s names no submission, so there is nothing to grade", path_to_submissions)
    return grade_entries(
        entries,
        Path(path_to_submissions),
        Path(output_dir),
        registry,
        track,
        jobs=jobs,
        limits=limits,
        interval=interval,
    )


def grade_entries(
    entries: list[SubmissionLine],
    source: Path,
    output_dir: Path,
    registry: Registry,
    track: Tracker = iter,
    *,
    jobs: int = 1,
    limits: Limits = DEFAULT_LIMITS,
    interval: bool = False,
    earlier: Mapping[int, CompetitionReport] | None = None,
    seen: str | None = None,
) -> dict[str, Any]:
    """Grade entries that were read from `source`; `seen` is the profile whose data they were made on, if not this one.

    An entry that could not be judged this time keeps its `earlier` report, by line, and is listed as `unjudged`.
    """
    earlier = earlier or {}
    reports: list[CompetitionReport] = []
    unjudged: list[dict[str, Any]] = []
    with _new_report(output_dir) as write, Workers(jobs) as workers:
        waiting = {
            entry: workers.grade(
                GradingJob(registry, entry.competition_id or "", entry.path, limits, output_dir, entry.run, interval)
            )
            for entry in entries
            if not entry.fault
        }
        for entry in track(entries):
            outcome = Ungraded(entry.fault_status, entry.fault) if entry.fault else waiting[entry].result()
            if entry.line in earlier and outcome.status in UNGRADED_STATUSES:
                reports.append(earlier[entry.line])
                outcome = Ungraded(outcome.status, outcome.reason or "")
            if isinstance(outcome, Ungraded):
                logger.error("%s, line %d: %s", source, entry.line, outcome.reason)
                unjudged.append(outcome.to_dict(entry.line, entry.competition_id))
            else:
                seed = outcome.seed if entry.seed is None else entry.seed
                reports.append(replace(outcome, seed=seed, seen=seen))
        summary = aggregate_reports(reports) | {"unjudged": unjudged}
        logger.info("Saved summary report to %s", write(json.dumps(summary, indent=2)))
    return summary


def read_entries(path: Path) -> list[SubmissionLine]:
    """The lines of a JSON-lines file, except for blank ones and those that begin with # or //."""
    try:
        with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
            lines = [(number, line.strip()) for number, line in enumerate(file, 1)]
    except OSError as error:
        raise PrerequisiteError(f"cannot read {path}: {reason_of(error)}") from error
    except ValueError:
        raise PrerequisiteError(f"{str(path)!r} cannot be a file's name") from None
    if is_lfs_pointer("\n".join(line for _, line in lines[:10]).encode("utf-8", "surrogateescape")):
        raise PrerequisiteError(f"{path} {LFS_POINTER}")
    return [_submission_line(number, line) for number, line in lines if line and not line.startswith(("#", "//"))]


def _submission_line(number: int, line: str) -> SubmissionLine:
    try:
        line.encode()
        values = json.loads(line)
    except UnicodeEncodeError:
        return SubmissionLine(number, None, "", "the line is not UTF-8 text")
    except RecursionError:
        return SubmissionLine(number, None, "", "the line is nested too deeply")
    except ValueError as error:
        return SubmissionLine(number, None, "", f"the line is not JSON: {getattr(error, 'msg', error)}")
    if not isinstance(values, dict):
        return SubmissionLine(number, None, "", "the line is not a JSON object")
    id, path = values.get("competition_id"), values.get("submission_path")
    name = id if isinstance(id, str) else None
    for key in ("competition_id", "submission_path"):
        if key not in values:
            return SubmissionLine(number, name, "", f"the line has no `{key}`")
    if name is None:
        return SubmissionLine(number, name, "", "`competition_id` must be a string")
    if not isinstance(path, str | None):
        return SubmissionLine(
            number, name, "", "`submission_path` must be a string, or null where there is no submission"
        )
    seed = values.get("seed")
    return SubmissionLine(number, name, str(path), seed=seed if type(seed) is int else None)


@contextmanager
def _new_report(folder: Path) -> Iterator[Callable[[str], Path]]:
    """A way to write a report that belongs to this run alone; first makes sure that the folder is writable."""
    try:
        path, part = _reserve(folder)
    except OSError as error:
        raise PrerequisiteError(f"cannot write to {folder}: {reason_of(error)}") from error

    def write(text: str) -> Path:
        try:
            part.write_text(text, encoding="utf-8")
            return part.rename(path)
        except OSError as error:
            raise PrerequisiteError(f"cannot write to {path}: {reason_of(error)}") from error

    try:
        yield write
    finally:
        with suppress(OSError):  # the report has been written, or what failed first is what the caller has to know
            part.unlink(missing_ok=True)


def _reserve(folder: Path) -> tuple[Path, Path]:
    """An unused name for a report, and the file that keeps others from taking it."""
    folder.mkdir(parents=True, exist_ok=True)
    now = timestamp()
    number = 1
    while True:
        path = grading_report(folder, now if number == 1 else f"{now}-{number}")
        number += 1
        part = path.with_name(f"{path.name}.part")
        try:
            part.touch(exist_ok=False)
        except FileExistsError:
            continue
        if not path.exists():
            return path, part
        part.unlink()


def aggregate_reports(competition_reports: list[CompetitionReport]) -> dict[str, Any]:
    """Counts over reports, and the reports themselves."""

    def count(name: str) -> int:
        return sum(bool(getattr(report, name)) for report in competition_reports)

    medals = {f"total_{kind}_medals": count(f"{kind}_medal") for kind in ("gold", "silver", "bronze")}
    return {
        "total_runs": len(competition_reports),
        "total_runs_with_submissions": count("submission_exists"),
        "total_valid_submissions": count("valid_submission"),
        "total_medals": sum(medals.values()),
        **medals,
        "total_above_median": count("above_median"),
        "competition_reports": [report.to_dict() for report in competition_reports],
    }
