"""mlebench grade-sample"""

from pathlib import Path

import click

from mlebench.cli.console import print_json, spinner
from mlebench.cli.exit_codes import FAILED
from mlebench.cli.options import data_dir_option, judging_options, profile_option, registry_at


@click.command("grade-sample")
@click.argument("submission", type=click.Path(readable=False, path_type=Path))
@click.argument("competition_id")
@click.option("--interval", is_flag=True, help="Also give an interval for the score, by resampling test rows.")
@judging_options
@data_dir_option
@profile_option
def command(
    submission: Path,
    competition_id: str,
    interval: bool,
    limit: int,
    strict: bool,
    data_dir: Path | None,
    profile: str,
) -> None:
    """Grade one submission; the report is one JSON object on stdout.

    A missing or invalid submission is a result, not a failure: the exit code is 0 and the report says why.
    """
    from mlebench.core.outcomes import UNGRADED_STATUSES
    from mlebench.grade import Limits, grade_csv

    with spinner(f"grading {submission.name}"):
        competition = registry_at(data_dir, profile).get_competition(competition_id)
        report = grade_csv(submission, competition, limits=Limits(limit), interval=interval)
    print_json(report.to_dict())
    if report.status in UNGRADED_STATUSES or (strict and report.status != "graded"):
        raise SystemExit(FAILED)
