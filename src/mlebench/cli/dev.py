"""mlebench dev"""

from pathlib import Path

import click

from mlebench.cli.dev_kernels import download_kernels
from mlebench.cli.invocation import Failures, VerbGroup
from mlebench.cli.options import all_option, competitions_option, registry_at


@click.group("dev", cls=VerbGroup)
def command() -> None:
    """Tools for maintainers of competitions and authors of agents."""


@command.command("download-leaderboard")
@competitions_option
@all_option
@click.option("--force", is_flag=True, help="Also download again those that are there.")
def download_leaderboard(ids: tuple[str, ...], everything: bool, force: bool) -> None:
    """Download missing leaderboards.

    Prints the path of each.
    """
    from mlebench.data import ensure_leaderboard_exists

    if not everything and not ids:
        raise click.UsageError("name a competition with -c ID, or give --all")
    registry = registry_at(None)
    failures = Failures()
    for id in registry.list_competition_ids() if everything else ids:
        with failures.of(id):
            click.echo(ensure_leaderboard_exists(registry.get_competition(id), force=force))
    failures.finish()


@command.command("scripted-model")
@click.argument("script")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="The port to listen on; 0: any free one.",
)
@click.option(
    "--log", type=click.Path(dir_okay=False, path_type=Path), help="A file to which a line is added for each request."
)
def scripted_model(script: str, port: int, log: Path | None) -> None:
    """Serve a model that answers from a script.

    SCRIPT is a YAML or JSON file, or the name of a built-in script. The first line on stdout is the base URL. It
    speaks OpenAI's and Anthropic's APIs. Press Ctrl-C to stop it.
    """
    from mlebench.gateway.scripted.script import read_script
    from mlebench.gateway.scripted.server import serve

    serve(read_script(script), port, log, click.echo)


command.add_command(download_kernels)
