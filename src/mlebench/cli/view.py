"""mlebench view"""

import os
from pathlib import Path

import click

from mlebench.cli.console import log_line
from mlebench.cli.options import data_dir_option, registry_at, runs_dir_option, runs_dirs_at

PORT = 8765


@click.command()
@click.argument("named", metavar="[GROUP|DIR]...", nargs=-1)
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
def command(named: tuple[str, ...], port: int, host: str | None, runs_dir: Path | None, data_dir: Path | None) -> None:
    """Serve pages about run groups, kept up to date during runs.

    DIR is a folder of run groups; GROUP is a group's path or the beginning of its name. Without either and without
    --runs-dir: the folders of this machine's runs, on real data and on twins.
    """
    from mlebench.core.serve import LOOPBACK, listening, serve
    from mlebench.web.server import application
    from mlebench.web.site_reader import SiteReader

    if runs_dir and any(map(os.path.isdir, named)):
        raise click.UsageError("give DIR or --runs-dir, not both")
    runs_dirs = runs_dirs_at(runs_dir, data_dir)
    folders = [_folder(name, runs_dirs) for name in named]
    if not named:
        folders = [folder for folder in runs_dirs if runs_dir or folder.is_dir()]
    source = SiteReader(folders, registry_at(data_dir))
    app = application(source, (host,) if host else ())
    with listening(host or LOOPBACK, (port,), None) as sockets:
        number = sockets[0].getsockname()[1]
        if host:
            log_line("Anyone who can reach this address can read these runs: their logs, code and submissions.")
        click.echo(f"http://{host or LOOPBACK}:{number}/")
        log_line("Press Ctrl-C to stop.")
        serve(app, sockets)


def _folder(named: str, runs_dirs: tuple[Path, ...]) -> Path:
    """A folder, or that of the run group with this name."""
    from mlebench.records.run_groups import find_group

    is_folder = os.path.isdir(named)  # noqa: PTH112 a Path would raise for a name that is too long
    return Path(named) if is_folder else find_group(named, *runs_dirs).paths.root
