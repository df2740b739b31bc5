"""mlebench grade"""

from pathlib import Path

import click

from mlebench.cli.common import data_dir_option, print_json, profile_option, registry_at, track

OURS_TO_MEND = ("not_prepared", "grader_error")


@click.command()
@click.option(
    "--submission",
    required=True,
    type=click.Path(path_type=Path),
    help="JSON lines with competition_id and submission_path.",
)
@click.option("--output-dir", required=True, type=click.Path(path_type=Path), help="Where the summary goes.")
@data_dir_option
@profile_option
def command(submission: Path, output_dir: Path, data_dir: Path | None, profile: str) -> None:
    """Grade many submissions; the summary is written to a file and its counts are JSON on stdout.

    The exit code is 1 when something other than a submission was at fault: the summary names it in `status`.
    """
    from mlebench.grade import grade_jsonl

    summary = grade_jsonl(
        submission,
        output_dir,
        registry_at(data_dir, profile),
        track=lambda entries: track(entries, lambda entry: entry["competition_id"]),
    )
    print_json({name: value for name, value in summary.items() if name != "competition_reports"})
    if any(report["status"] in OURS_TO_MEND for report in summary["competition_reports"]):
        raise SystemExit(1)
