"""mlebench new-competition"""

import os
import shlex
from pathlib import Path

import click


@click.command("new-competition")
@click.argument("folder", type=click.Path(path_type=Path))
def command(folder: Path) -> None:
    """Create a competition of your own: FOLDER, named by its id, works as it is. Replace its files one by one."""
    from mlebench.contract.new_competition import new_competition
    from mlebench.core import paths

    made = new_competition(folder)
    click.echo(made)
    click.echo(f"Try it: mlebench test-competition {shlex.quote(str(made))}", err=True)
    parent = paths.resolved(made).parent
    search_path = [paths.resolved(folder) for folder in paths.competition_path()]
    if parent not in search_path:
        value = shlex.quote(os.pathsep.join(map(str, [*search_path, parent])))
        click.echo(f"So that all commands find it: export {paths.COMPETITION_PATH_VARIABLE}={value}", err=True)
