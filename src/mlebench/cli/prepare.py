"""mlebench prepare"""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from mlebench.cli.common import data_dir_option, registry_at, show_checks, twin_options, watching
from mlebench.errors import PrerequisiteError, UnknownCompetitionError
from mlebench.registry import Registry


@click.command()
@click.option("-c", "--competition-id", "ids", multiple=True, help="A competition to prepare; may be repeated.")
@click.option("-a", "--all", "everything", is_flag=True, help="All competitions there are.")
@click.option("--lite", is_flag=True, help="The low-complexity split.")
@click.option("--split", help="A split, by name.")
@click.option(
    "-l",
    "--list",
    "listing",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A text file with an id a line.",
)
@click.option(
    "--from",
    "origin",
    type=click.Path(exists=True, path_type=Path),
    help="Raw data: an archive, a raw folder, or a folder with <id>.zip or <id>/ for many.",
)
@click.option("--twin", is_flag=True, help="Use synthetic data, made on the spot.")
@twin_options
@data_dir_option
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Competitions at a time; threads, where they are fewer.",
)
@click.option("--check", is_flag=True, help="Only show what is there, what is missing and how large it is.")
@click.option(
    "--description",
    type=click.Choice(["ours", "original"]),
    default="ours",
    show_default=True,
    help="Whose text agents get; the original one is fetched with your Kaggle login.",
)
@click.option("--keep-raw", is_flag=True, help="Keep the raw files, unpacked.")
@click.option("--skip-verification", is_flag=True, help="Do not compare with published checksums and scores.")
@click.option("--overwrite-checksums", is_flag=True, help="For maintainers: prepare again, write checksums.yaml anew.")
@click.option("--overwrite-leaderboard", is_flag=True, help="For maintainers: get the leaderboard from Kaggle anew.")
def command(
    ids: tuple[str, ...],
    everything: bool,
    lite: bool,
    split: str | None,
    listing: Path | None,
    origin: Path | None,
    twin: bool,
    seed: int,
    size: float,
    data_dir: Path | None,
    jobs: int,
    check: bool,
    description: str,
    keep_raw: bool,
    skip_verification: bool,
    overwrite_checksums: bool,
    overwrite_leaderboard: bool,
) -> None:
    """Turn raw data into what agents (public) and graders (private) need.

    Raw data is looked for in <data-dir>/<id>/ (raw/ or <id>.zip) and else downloaded from Kaggle; with --from it is
    read from another place, with --twin it is made up. An interrupted prepare goes on where it stopped.
    """
    from mlebench.data.batch import prepare_many
    from mlebench.data.kaggle import KaggleSource
    from mlebench.data.pipeline import Options
    from mlebench.data.sources import PathSource, TwinSource

    registry = registry_at(data_dir, twin=twin)
    chosen = _chosen(registry, ids, everything, lite, split, listing)
    source = TwinSource(seed, size) if twin else PathSource(origin) if origin else KaggleSource()
    if check:
        show_checks(registry, chosen, source)
        return
    options = Options(keep_raw, not skip_verification, overwrite_checksums, description == "original")
    with watching(chosen) as watch:
        outcomes = []
        for outcome in prepare_many(
            registry, chosen, source, options, jobs=jobs, overwrite_leaderboard=overwrite_leaderboard, watch=watch
        ):
            outcomes.append(outcome)
            watch.end(outcome.id)
            click.echo(f"{outcome.id}: {outcome.status}", err=True)
    _conclude(outcomes, registry.get_data_dir())


def _conclude(outcomes: list, data_dir: Path) -> None:
    """The last word: a table of what went wrong, and the exit code."""
    failed = [outcome for outcome in outcomes if not outcome.ok]
    if len(outcomes) > 1 or not failed:
        click.echo(f"{len(outcomes) - len(failed)} of {len(outcomes)} are prepared in {data_dir}", err=True)
    if not failed:
        return
    if len(outcomes) == 1 and failed[0].status != "bug":
        kind = UnknownCompetitionError if failed[0].reason.startswith("there is no competition") else PrerequisiteError
        raise kind(failed[0].reason)
    for outcome in failed:
        click.echo(f"  {outcome.id}: {outcome.status}: {outcome.reason}", err=True)
    sys.exit(1)


def _chosen(
    registry: Registry, ids: Sequence[str], everything: bool, lite: bool, split: str | None, listing: Path | None
) -> list[str]:
    if ids:
        return list(ids)
    if everything:
        return registry.list_competition_ids()
    if lite or split:
        return _here(registry, registry.get_split(split or "lite"), split or "lite")
    if listing:
        return listing.read_text(encoding="utf-8").split()
    raise click.UsageError("say what to prepare: -c ID, --lite, --split NAME, --all or --list FILE")


def _here(registry: Registry, members: list[str], split: str) -> list[str]:
    known = set(registry.list_competition_ids())
    if missing := [id for id in members if id not in known]:
        click.echo(f"{len(missing)} of the {len(members)} in split {split} are not here yet", err=True)
    return [id for id in members if id in known]
