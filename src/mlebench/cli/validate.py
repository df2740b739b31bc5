"""mlebench validate"""

from pathlib import Path

import click

from mlebench.cli.common import busy, data_dir_option, print_json, profile_option, registry_at


@click.command()
@click.argument("submission", type=click.Path(path_type=Path))
@click.argument("competition_id")
@data_dir_option
@profile_option
def command(submission: Path, competition_id: str, data_dir: Path | None, profile: str) -> None:
    """Check a submission's format with public files only; no answer is read and no score shown.

    The exit code is 1 when the format is wrong.
    """
    from mlebench.validate import validate_format

    with busy(f"checking {submission.name}"):
        valid, message = validate_format(submission, registry_at(data_dir, profile).get_competition(competition_id))
    print_json({"is_valid": valid, "result": message})
    if not valid:
        raise SystemExit(1)
