"""mlebench report"""

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mlebench.cli.console import folded, is_terminal, log_line, table_lines, track, write_output
from mlebench.cli.options import data_dir_option, registry_at, runs_dir_option, runs_dirs_at
from mlebench.cli.quantities import PositiveNumber
from mlebench.core import paths
from mlebench.core.suggestions import did_you_mean
from mlebench.records.report import BADGES
from mlebench.report.types import SPLITS

if TYPE_CHECKING:
    from mlebench.report.formats import TextTable
    from mlebench.report.standings import Standings


class BadgeKinds(click.ParamType):
    """Kinds of badges, with commas between them."""

    name = "badges"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        kinds = tuple(map(str.strip, value.split(",")))
        unknown = [kind for kind in kinds if kind not in BADGES]
        if unknown:
            self.fail(f"{unknown[0]!r} is not a badge; {did_you_mean(unknown[0], BADGES)}", param, ctx)
        return kinds


@click.command()
@click.argument("inputs", metavar="[GROUP|BUNDLE|FILE]...", nargs=-1)
@click.option("--reports", multiple=True, metavar="[NAME=]FILE", help="A grading report; NAME says whose it is.")
@click.option(
    "--experiment", "experiments", multiple=True, metavar="ID", help="The run groups that --table lists under this id."
)
@click.option(
    "--table",
    type=click.Path(dir_okay=False, path_type=Path),
    help="CSV file with columns experiment_id and run_group. Default: run_group_experiments.csv in the runs directory.",
)
@click.option("--split", type=click.Choice(SPLITS), help="Only this split. Default: all that the agents were run on.")
@click.option("--pad-missing", "pad", is_flag=True, help="Count missing runs as failures.")
@click.option(
    "--power",
    type=PositiveNumber(max=100),
    metavar="DELTA",
    help="Say how many seeds it takes to detect a difference of DELTA percentage points in the medal rate.",
)
@click.option("--strict", is_flag=True, help="Refuse to compare or pool runs under unlike conditions.")
@click.option(
    "--without",
    type=BadgeKinds(),
    default=(),
    metavar="BADGES",
    help=f"Leave out competitions with these badges: {', '.join(BADGES)}, separated by commas.",
)
@click.option("--published", is_flag=True, help="Show the published leaderboard too.")
@click.option(
    "--format", "form", type=click.Choice(["table", "md", "csv", "json", "html"]), default="table", show_default=True
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="A file to write to instead of stdout; for html, a folder."
)
@runs_dir_option
@data_dir_option
def command(
    inputs: tuple[str, ...],
    reports: tuple[str, ...],
    experiments: tuple[str, ...],
    table: Path | None,
    split: str | None,
    pad: bool,
    power: float | None,
    strict: bool,
    without: tuple[str, ...],
    published: bool,
    form: str,
    output: Path | None,
    runs_dir: Path | None,
    data_dir: Path | None,
) -> None:
    """Make standings from run groups, bundles and grading reports: medals, intervals, comparisons.

    Files may be ours or the reference's. Scores of a bundle are `claimed` until `mlebench bundle verify` has graded
    them. The first agent is compared with each of the others. Without arguments: the newest run group.
    """
    from mlebench.report import Inputs, make_standings

    if form == "html" and output is None:
        raise click.UsageError("--format html writes pages: name a folder for them with -o")
    registry = registry_at(data_dir)
    runs_dirs = runs_dirs_at(runs_dir, data_dir)
    if not (inputs or reports or experiments):
        inputs = (_newest(runs_dirs),)
    sources = Inputs(runs_dirs[0], more_runs_dirs=runs_dirs[1:])
    for named in (*inputs, *reports):
        sources.add(named)
    for id in experiments:
        sources.add_experiment(id, table or paths.experiments_table(runs_dirs[0]))
    made = make_standings(sources, split, pad=pad, power=power, published=published, strict=strict, without=without)
    if form == "html" and output:
        from mlebench.web import write_pages

        click.echo(write_pages(made, sources.groups, output, registry=registry, track=lambda names: track(names, str)))
    else:
        _show(made, form, output)


def _newest(runs_dirs: tuple[Path, ...]) -> str:
    """The folder of the newest run group; says which one it is."""
    from mlebench.records.run_groups import newest_group

    group = newest_group(*runs_dirs, on_fault=log_line)
    if group is None:
        raise click.UsageError(
            f"name a run group, a bundle, a grading report or an experiment: "
            f"there is no run group in {' or '.join(map(str, runs_dirs))}"
        )
    log_line(f"The newest run group: {group.paths.root}")
    return str(group.paths.root)


def _show(made: "Standings", form: str, output: Path | None) -> None:
    from mlebench.report import formats

    renderers = {"md": formats.to_markdown, "csv": formats.to_csv, "json": formats.to_json}
    width = shutil.get_terminal_size().columns if output is None and is_terminal(sys.stdout) else None
    text = renderers[form](made) if form in renderers else _plain(formats.tables(made), width)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_output(output, text)
    for note in formats.notes(made):
        log_line(note)


def _plain(tables: "list[TextTable]", width: int | None) -> str:
    parts = [part for table in tables for part in folded(table.header, table.rows, table.keys, width)]
    return "\n".join("".join(f"{line}\n" for line in table_lines(*part)) for part in parts)
