"""mlebench twin"""

from pathlib import Path

import click

from mlebench.cli.console import track
from mlebench.cli.invocation import Failures
from mlebench.cli.options import data_dir_option, registry_at, splits_option, twin_options


@click.command()
@click.argument("ids", metavar="[COMPETITION_ID]...", nargs=-1)
@splits_option
@twin_options
@data_dir_option
def command(ids: tuple[str, ...], splits: tuple[str, ...], seed: int, size: float, data_dir: Path | None) -> None:
    """Make synthetic raw data only, in a competition's exact layout; `prepare --twin` continues from there."""
    from mlebench.data.sources import TwinSource

    registry = registry_at(data_dir, twin=True)
    if not ids and not splits:
        raise click.UsageError("name competitions, or a split with --split")
    failures = Failures()
    chosen: list[str] = [*ids, *(id for split in splits for id in registry.get_split(split))]
    for id in track(chosen, str):
        with failures.of(id):
            click.echo(TwinSource(seed, size).fetch(registry.get_competition(id)))
    failures.finish()
