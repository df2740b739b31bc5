"""mlebench new-competition"""

import shlex
from pathlib import Path

import click


@click.command("new-competition")
@click.argument("folder", type=click.Path(path_type=Path))
def command(folder: Path) -> None:
    """Create a competition of your own: FOLDER, named by its id, works as it is. Replace its files one by one."""
    from mlebench.contract.new_competition import new_competition

    made = new_competition(folder)
    click.echo(made)
    click.echo(f"Try it: mlebench test-competition {shlex.quote(str(made))}", err=True)
