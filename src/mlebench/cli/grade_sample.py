"""mlebench grade-sample"""

from pathlib import Path

import click

from mlebench.cli.common import busy, data_dir_option, print_json, profile_option, registry_at


@click.command("grade-sample")
@click.argument("submission", type=click.Path(path_type=Path))
@click.argument("competition_id")
@data_dir_option
@profile_option
def command(submission: Path, competition_id: str, data_dir: Path | None, profile: str) -> None:
    """Grade one submission; the report is one JSON object on stdout.

    A missing or invalid submission is a result, not a failure: the exit code is 0 and the report says why.
    """
    from mlebench.grade import grade_csv

    with busy(f"grading {submission.name}"):
        report = grade_csv(submission, registry_at(data_dir, profile).get_competition(competition_id))
    print_json(report.to_dict())
