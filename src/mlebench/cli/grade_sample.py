"""mlebench grade-sample"""

from pathlib import Path
from typing import Any

import click

from mlebench.cli.console import print_json, spinner
from mlebench.cli.exit_codes import FAILED
from mlebench.cli.options import BOTH_PROFILES, data_dir_option, judging_options, profiles_option, registry_at


@click.command("grade-sample")
@click.argument("submission", type=click.Path(readable=False, path_type=Path))
@click.argument("competition_id")
@click.option("--interval", is_flag=True, help="Also give an interval for the score, by resampling test rows.")
@judging_options
@data_dir_option
@profiles_option
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

    A missing or invalid submission is a result, not a failure: the exit code is 0 and the report says why. With
    --profile v1,v2 there is a report for each profile.
    """
    from mlebench.core.outcomes import UNGRADED_STATUSES
    from mlebench.grade import GradingLimits, grade_csv, grade_csv_under_profiles

    options: dict[str, Any] = {"limits": GradingLimits(limit), "interval": interval}
    with spinner(f"grading {submission.name}"):
        if profile == BOTH_PROFILES:
            reports = grade_csv_under_profiles(submission, competition_id, registry_at(data_dir), **options)
        else:
            competition = registry_at(data_dir, profile).get_competition(competition_id)
            reports = {profile: grade_csv(submission, competition, **options)}
    texts = {name: report.to_dict() for name, report in reports.items()}
    print_json(texts if profile == BOTH_PROFILES else texts[profile])
    if any(report.status in UNGRADED_STATUSES or (strict and report.status != "graded") for report in reports.values()):
        raise SystemExit(FAILED)
