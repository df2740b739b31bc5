"""mlebench dev"""

import click

from mlebench.cli.common import Failures, registry_at


@click.group("dev")
def command() -> None:
    """For those who maintain competitions."""


@command.command("download-leaderboard")
@click.option("-c", "--competition-id", help="A competition.")
@click.option("--all", "everything", is_flag=True, help="All competitions.")
@click.option("--force", is_flag=True, help="Get it from Kaggle anew.")
def download_leaderboard(competition_id: str | None, everything: bool, force: bool) -> None:
    """Make sure that the leaderboard is there."""
    from mlebench.data import ensure_leaderboard_exists

    if not everything and not competition_id:
        raise click.UsageError("say which: -c ID or --all")
    registry = registry_at(None)
    failures = Failures()
    for id in registry.list_competition_ids() if everything else [str(competition_id)]:
        with failures.of(id):
            click.echo(ensure_leaderboard_exists(registry.get_competition(id), force=force))
    failures.finish()
