"""mlebench view"""

from pathlib import Path

import click

from mlebench import paths
from mlebench.cli.options import data_dir_option, registry_at, runs_dir_option
from mlebench.cli.output import say

PORT = 8765


@click.command()
@click.argument("folders", metavar="[DIR]...", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0: any free one.",
)
@click.option("--host", help="The address to listen on. Default: 127.0.0.1, this machine only.")
@runs_dir_option
@data_dir_option
def command(
    folders: tuple[Path, ...], port: int, host: str | None, runs_dir: Path | None, data_dir: Path | None
) -> None:
    """Serve pages about run groups, kept up to date during runs.

    DIR is a run group, or a folder of them. Without DIR and --runs-dir: the folders of this machine's runs, on real
    data and on twins.
    """
    from mlebench.validate.server import LOOPBACK, listening
    from mlebench.web.server import application, serve
    from mlebench.web.source import Source

    if folders and runs_dir:
        raise click.UsageError("give DIR or --runs-dir, not both")
    registry = registry_at(data_dir)
    source = Source(folders or ((runs_dir,) if runs_dir else _default_folders(data_dir)), registry)
    app = application(source, (host,) if host else ())
    with listening(host or LOOPBACK, (port,), None) as sockets:
        number = sockets[0].getsockname()[1]
        if host:
            say("Anyone who can reach this address can read these runs: their logs, code and submissions.")
        click.echo(f"http://{host or LOOPBACK}:{number}/")
        say("Press Ctrl-C to stop.")
        serve(app, sockets)


def _default_folders(data_dir: Path | None) -> tuple[Path, ...]:
    found = dict.fromkeys(
        paths.default_runs_dir(registry_at(data_dir, twin=twin).get_data_dir()) for twin in (False, True)
    )
    return tuple(folder for folder in found if folder.is_dir())
