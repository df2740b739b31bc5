"""mlebench prepare"""

from collections.abc import Sequence
from pathlib import Path

import click

from mlebench.cli.common import Failures, data_dir_option, registry_at, track, twin_options
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
@click.option("--twin", is_flag=True, help="Use synthetic data, made on the spot.")
@twin_options
@data_dir_option
@click.option("--keep-raw", is_flag=True, help="Keep raw files that were unpacked for preparing.")
@click.option("--skip-verification", is_flag=True, help="Do not compare with published checksums.")
@click.option("--overwrite-checksums", is_flag=True, help="For maintainers: prepare again, write checksums.yaml anew.")
@click.option("--overwrite-leaderboard", is_flag=True, help="For maintainers: get the leaderboard from Kaggle anew.")
def command(
    ids: tuple[str, ...],
    everything: bool,
    lite: bool,
    split: str | None,
    listing: Path | None,
    twin: bool,
    seed: int,
    size: float,
    data_dir: Path | None,
    keep_raw: bool,
    skip_verification: bool,
    overwrite_checksums: bool,
    overwrite_leaderboard: bool,
) -> None:
    """Turn raw data into what agents (public) and graders (private) need.

    Raw data is read from <data-dir>/<id>/raw/ or <data-dir>/<id>/<id>.zip; with --twin it is made up.
    """
    from mlebench.data import ensure_leaderboard_exists
    from mlebench.data.pipeline import prepare
    from mlebench.data.sources import LocalSource, TwinSource

    registry = registry_at(data_dir, twin=twin)
    source = TwinSource(seed, size) if twin else LocalSource()
    failures = Failures()
    for id in track(_chosen(registry, ids, everything, lite, split, listing), str):
        with failures.of(id):
            competition = registry.get_competition(id)
            ensure_leaderboard_exists(competition, force=overwrite_leaderboard)
            done = prepare(
                competition,
                source,
                keep_raw=keep_raw,
                verify=not skip_verification,
                overwrite_checksums=overwrite_checksums,
            )
            click.echo(f"{id}: {'prepared' if done else 'already prepared'} in {competition.paths.prepared}", err=True)
    failures.finish()


def _chosen(
    registry: Registry, ids: Sequence[str], everything: bool, lite: bool, split: str | None, listing: Path | None
) -> list[str]:
    if ids:
        return list(ids)
    if everything:
        return registry.list_competition_ids()
    if lite or split:
        return registry.get_split(split or "lite")
    if listing:
        return listing.read_text(encoding="utf-8").split()
    raise click.UsageError("say what to prepare: -c ID, --lite, --split NAME, --all or --list FILE")
