"""mlebench grade"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from mlebench.cli.console import log_line, mask_braces, print_json, table_lines, track
from mlebench.cli.exit_codes import FAILED
from mlebench.cli.options import (
    BOTH_PROFILES,
    data_dir_option,
    judging_options,
    profiles_option,
    registry_at,
    runs_dir_option,
    runs_dirs_at,
)
from mlebench.cli.quantities import Duration, Size
from mlebench.core.outcomes import GRADED, INVALID, MISSING, UNGRADED_STATUSES
from mlebench.core.untrusted import shorten

if TYPE_CHECKING:
    from mlebench.grade.batch import SubmissionLine
    from mlebench.records.run_groups import Group, Run

MOST_JOBS = 8
AGENTS_FAULT = (INVALID, MISSING)
LONGEST_CELL = 80


@click.command()
@click.argument("group", required=False)
@click.option(
    "--submission",
    type=click.Path(readable=False, path_type=Path),
    help="JSON lines with competition_id and submission_path.",
)
@click.option("--output-dir", type=click.Path(readable=False, path_type=Path), help="Where the summary goes.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help=f"Submissions to grade at a time. Default: one per CPU, at most {MOST_JOBS}.",
)
@click.option(
    "--time-limit", type=Duration(), help="For each submission, if lower than the default: ten times gold's CPU time."
)
@click.option("--memory", type=Size(), help="For each submission, if lower than the default: four times gold's.")
@click.option("--snapshots", is_flag=True, help="Grade instead what the runs of GROUP had submitted at earlier times.")
@click.option("--interval", is_flag=True, help="Also give an interval for each score, by resampling test rows.")
@judging_options
@runs_dir_option
@data_dir_option
@profiles_option
def command(group: str | None, strict: bool, **options: Any) -> None:
    """Grade many submissions, or those of a run GROUP again.

    A JSON-lines file names the submissions; the summary goes to the output folder. A run group is named by its path
    or the beginning of its name; its report is replaced. If the reference wrote the group, a report is added to its
    folder, and the data is that of --data-dir. With --snapshots, reports stay as they are: the submissions kept during
    the runs are graded, and scores over time are written beside them. Counts go to stdout as JSON, a table of all
    submissions to stderr. Each submission gets a status. The exit code is 1 if one could not be judged for a reason
    other than the submission itself; the summary says why.

    With --profile v1,v2 each submission gets two reports, in the folders v1 and v2 of the output folder, and stdout has
    the counts of both. A competition whose profiles have different test rows is refused.
    """
    settings = _settings(options)
    both = options["profile"] == BOTH_PROFILES
    if options["snapshots"]:
        if group is None or settings.pop("interval"):
            raise click.UsageError("--snapshots needs a run group, and cannot be combined with --interval")
        raise SystemExit(_grade_snapshots(group, options, settings))
    if group is None:
        if options["submission"] is None or options["output_dir"] is None:
            raise click.UsageError("give --submission and --output-dir, or name a run group")
        summaries = _grade_lines(options, settings)
    else:
        if options["submission"] is not None or options["output_dir"] is not None:
            raise click.UsageError("--submission and --output-dir cannot be combined with a run group")
        if both:
            raise click.UsageError(f"--profile {BOTH_PROFILES} needs --submission: `mlebench runs submission` makes it")
        summaries = {options["profile"]: _grade_group(group, options, settings)}
    counts = {profile: _counts(summary) for profile, summary in summaries.items()}
    print_json(counts if both else counts[options["profile"]])
    _say_table(summaries)
    failures = UNGRADED_STATUSES + AGENTS_FAULT * strict
    for summary in summaries.values():
        if summary["unjudged"] or any(report["status"] in failures for report in summary["competition_reports"]):
            raise SystemExit(FAILED)


def _counts(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in summary.items() if not isinstance(value, list)}


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """How many to grade at a time, and within which limits."""
    from mlebench.core.processes import cpu_count
    from mlebench.grade import Limits

    return {
        "jobs": options["jobs"] or min(cpu_count(), MOST_JOBS),
        "limits": Limits(options["limit"], options["time_limit"], options["memory"]),
        "interval": options["interval"],
    }


def _grade_lines(options: dict[str, Any], settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The summary of each profile."""
    from mlebench.grade import grade_jsonl, grade_jsonl_under_profiles

    files, profile = (options["submission"], options["output_dir"]), options["profile"]
    if profile == BOTH_PROFILES:
        return grade_jsonl_under_profiles(*files, registry_at(options["data_dir"]), _track_entries, **settings)
    return {profile: grade_jsonl(*files, registry_at(options["data_dir"], profile), _track_entries, **settings)}


def _grade_group(named: str, options: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    from mlebench.run.regrade import grade_group, grade_reference_group

    run_group = _find(named, options)
    if run_group.record.origin is None:
        return grade_group(run_group, track=_track_runs, **settings)
    registry = registry_at(options["data_dir"], options["profile"])
    return grade_reference_group(run_group, registry, track=_track_entries, **settings)


def _grade_snapshots(named: str, options: dict[str, Any], settings: dict[str, Any]) -> int:
    """Grade the snapshots of a group's runs; return the exit code."""
    from mlebench.run.over_time import grade_snapshots

    graded = grade_snapshots(_find(named, options), track=_track_runs, **settings)
    print_json({"runs": len(graded), "snapshots": sum(len(run.points) for run in graded)})
    rows = [
        [run.competition, run.run_id, f"{point.seconds:g}", *_cells(msgspec.structs.asdict(point))]
        for run in graded
        for point in run.points
    ]
    for line in table_lines(["competition", "run", "seconds", "status", "score", "medal", "reason"], rows):
        log_line(line)
    judged = (GRADED, *AGENTS_FAULT)
    return 0 if all(point.status in judged for run in graded for point in run.points) else FAILED


def _find(named: str, options: dict[str, Any]) -> "Group":
    from mlebench.records.run_groups import find_group

    return find_group(named, *runs_dirs_at(options["runs_dir"], options["data_dir"]))


def _track_entries(entries: "list[SubmissionLine]") -> "Iterable[SubmissionLine]":
    return track(entries, lambda entry: entry.competition_id or f"line {entry.line}")


def _track_runs(runs: "list[Run]") -> "Iterable[Run]":
    return track(runs, lambda run: run.record.competition)


def _say_table(summaries: dict[str, dict[str, Any]]) -> None:
    """All submissions; a column for the profile only if there are two, one for seeds only if one is stated."""
    header = ["competition", "profile", "seed", "status", "score", "medal", "path", "reason"]
    rows = [
        [row[0], profile if len(summaries) > 1 else None, *row[1:]]
        for profile, summary in summaries.items()
        for row in _rows(summary)
    ]
    submissions = [(row[0], row[6]) for row in rows]
    order = {submission: number for number, submission in enumerate(dict.fromkeys(submissions))}
    rows.sort(key=lambda row: order[row[0], row[6]])  # the profiles of one submission below each other
    used = [
        at
        for at, name in enumerate(header)
        if name not in ("profile", "seed") or any(row[at] is not None for row in rows)
    ]
    header, rows = [header[at] for at in used], [[row[at] for at in used] for row in rows]
    for line in table_lines(header, rows) if rows else ():
        log_line(line)


def _rows(summary: dict[str, Any]) -> Iterator[list[Any]]:
    for report in summary["competition_reports"]:
        *verdict, reason = _cells(report)
        yield [report["competition_id"], report["seed"], *verdict, _short_path(report["submission_path"]), reason]
    for row in summary["unjudged"]:
        line = f"line {row['line']}" if "line" in row else None
        yield [_short(row["competition_id"]), None, row["status"], None, None, line, _short(row["reason"])]


def _cells(report: dict[str, Any]) -> list[Any]:
    from mlebench.grade.badges import badges_in_text, medal_with_badges

    medal = next((kind for kind in ("gold", "silver", "bronze") if report[f"{kind}_medal"]), None)
    labels = [badge.label for badge in badges_in_text(report.get("badges"))]
    return [report["status"], report["score"], medal_with_badges(medal, labels), _short(report["reason"])]


def _short(text: str | None) -> str | None:
    """One short line of text that an agent or a grader may have written."""
    return None if text is None else shorten(_one_line(text), LONGEST_CELL)


def _short_path(path: str) -> str | None:
    """The end of a path, which tells it from others; None if no submission was named."""
    text = _one_line(path)
    return None if text == "None" else text if len(text) <= LONGEST_CELL else f"…{text[1 - LONGEST_CELL :]}"


def _one_line(text: str) -> str:
    return mask_braces(" ".join(text.split()))
