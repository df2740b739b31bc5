"""mlebench grade"""

from pathlib import Path

import click

from mlebench.cli.codes import FAILED
from mlebench.cli.common import data_dir_option, judging_options, print_json, profile_option, registry_at, track

NOT_JUDGED = ("not_prepared", "grader_error")
AGENTS_FAULT = ("invalid", "missing")


@click.command()
@click.option(
    "--submission",
    required=True,
    type=click.Path(readable=False, path_type=Path),
    help="JSON lines with competition_id and submission_path.",
)
@click.option(
    "--output-dir", required=True, type=click.Path(readable=False, path_type=Path), help="Where the summary goes."
)
@judging_options
@data_dir_option
@profile_option
def command(submission: Path, output_dir: Path, limit: int, strict: bool, data_dir: Path | None, profile: str) -> None:
    """Grade many submissions; the summary is written to a file and its counts are JSON on stdout.

    Each line of the file ends with a status. The exit code is 1 when a line could not be judged for another reason than
    its submission: the summary says why.
    """
    from mlebench.grade import grade_jsonl

    summary = grade_jsonl(
        submission,
        output_dir,
        registry_at(data_dir, profile),
        track=lambda entries: track(entries, lambda entry: entry.competition_id or f"line {entry.line}"),
        limit=limit,
    )
    print_json({name: value for name, value in summary.items() if not isinstance(value, list)})
    failures = NOT_JUDGED + AGENTS_FAULT * strict
    if summary["unjudged"] or any(report["status"] in failures for report in summary["competition_reports"]):
        raise SystemExit(FAILED)
