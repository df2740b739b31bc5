"""mlebench dev"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from mlebench.cli.console import print_table, track
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


@command.command("download-kernels")
@competitions_option
@click.option("--refresh-list", is_flag=True, help="First ask Kaggle which notebooks there are.")
def download_kernels(ids: Sequence[str], refresh_list: bool) -> None:
    """Download published notebooks.

    Without -c, those of all competitions. `inspect plagiarism` compares code with them. Notebooks that are already here
    are kept. The lists ship with the competitions and are not complete.
    """
    from mlebench.core.paths import kernels_dir
    from mlebench.data import kernels

    registry = registry_at(None)
    failures = Failures()
    counts: list[tuple[str, Counter[str]]] = []
    for id in track(ids or registry.list_competition_ids(), str):
        count: Counter[str] = Counter()
        counts.append((id, count))
        with failures.of(id):
            competition = registry.get_competition(id)
            if refresh_list:
                kernels.refresh_kernel_list(competition)
            for name, state in kernels.download_kernels(competition):
                count[state] += 1
                if state not in (kernels.DOWNLOADED, kernels.PRESENT):
                    click.echo(f"{id}: {ascii(name)[1:-1]}: {state}")
    rows = [[id, *(count[state] for state in kernels.STATES)] for id, count in counts]
    print_table(["competition", *kernels.STATES], rows)
    click.echo(f"Notebooks are in {kernels_dir('<competition>')}")
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
