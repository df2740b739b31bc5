"""mlebench prepare"""

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from mlebench.cli.console import log_line, print_table, watching
from mlebench.cli.exit_codes import FAILED
from mlebench.cli.options import (
    all_option,
    competitions_option,
    data_dir_option,
    listed,
    listing_option,
    members_of,
    profile_option,
    registry_at,
    splits_option,
    twin_options,
)
from mlebench.cli.prepare_check import show_checks
from mlebench.core.errors import PrerequisiteError
from mlebench.registry import Registry

# At most one option of each group can be given.
EXCLUSIVE = (
    ("origin", "twin"),
    ("twin", "overwrite_checksums"),
    ("check", "overwrite_checksums"),
    ("check", "overwrite_leaderboard"),
    ("check", "force"),
)


@click.command()
@competitions_option
@all_option
@click.option("--lite", is_flag=True, help="The low-complexity split.")
@splits_option
@listing_option()
@click.option(
    "--from",
    "origin",
    type=click.Path(exists=True, readable=False, path_type=Path),
    help="Raw data: an archive, a raw folder, or a folder with <id>.zip or <id>/ for many.",
)
@click.option("--twin", is_flag=True, help="Use synthetic data, made on the spot.")
@twin_options
@data_dir_option
@profile_option
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Competitions to prepare at a time; if fewer are named, each gets more threads.",
)
@click.option("--check", is_flag=True, help="Only show what is there, what is missing and how large it is.")
@click.option(
    "--description",
    type=click.Choice(["ours", "original"]),
    default="ours",
    show_default=True,
    help="The description that agents get; the original is fetched with your Kaggle login.",
)
@click.option(
    "--force", is_flag=True, help="Prepare again what is prepared; the old data stays until the new is complete."
)
@click.option("--keep-raw", is_flag=True, help="Keep the raw files, unpacked.")
@click.option("--skip-verification", is_flag=True, help="Do not compare with published checksums and scores.")
@click.option(
    "--overwrite-checksums", is_flag=True, help="For maintainers: prepare again and overwrite checksums.yaml."
)
@click.option("--overwrite-leaderboard", is_flag=True, help="For maintainers: download the leaderboard again.")
def command(
    ids: tuple[str, ...],
    everything: bool,
    lite: bool,
    splits: tuple[str, ...],
    listing: Path | None,
    origin: Path | None,
    twin: bool,
    seed: int,
    size: float,
    data_dir: Path | None,
    profile: str,
    jobs: int,
    check: bool,
    description: str,
    force: bool,
    keep_raw: bool,
    skip_verification: bool,
    overwrite_checksums: bool,
    overwrite_leaderboard: bool,
) -> None:
    """Turn raw data into what agents (public) and graders (private) need.

    Name competitions with -c, --lite, --split, --list or --all, or with several of these.
    Raw data is taken from <data-dir>/<id>/ (raw/ or <id>.zip) or else downloaded from Kaggle; with --from it is read
    from elsewhere, with --twin it is synthetic. An interrupted prepare continues where it stopped.
    """
    from mlebench.data.batch import prepare_many
    from mlebench.data.kaggle import KaggleSource
    from mlebench.data.pipeline import Options
    from mlebench.data.sources import PathSource, TwinSource

    _refuse_contradictions(click.get_current_context())
    registry = registry_at(data_dir, profile, twin=twin)
    chosen = _chosen(registry, ids, everything, ("lite",) * lite + splits, listing)
    if origin and origin.is_file() and len(chosen) > 1:
        raise click.UsageError(f"--from {origin} is the archive of one competition, but {len(chosen)} are named")
    source = TwinSource(seed, size) if twin else PathSource(origin) if origin else KaggleSource()
    if check:
        show_checks(registry, chosen, source)
        return
    options = Options(keep_raw, not skip_verification, overwrite_checksums, description == "original", force)
    outcomes, possible = _set_impossible_aside(registry, chosen, source, options)
    with watching(possible) as progress:
        settings: dict[str, Any] = {"jobs": jobs, "overwrite_leaderboard": overwrite_leaderboard, "progress": progress}
        for outcome in prepare_many(registry, possible, source, options, **settings):
            outcomes.append(outcome)
            _say(outcome, one_of_many=len(chosen) > 1)
            progress[outcome.id].end()
    _conclude(sorted(outcomes, key=lambda outcome: chosen.index(outcome.id)), registry.get_data_dir())


def _set_impossible_aside(
    registry: Registry, ids: Sequence[str], source: Any, options: Any
) -> tuple[list[Any], list[str]]:
    """Say once why several competitions cannot be prepared; return their outcomes and the ids of the others."""
    from mlebench.data.batch import PrepareOutcome
    from mlebench.data.preflight import shared_faults
    from mlebench.data.sources import missing_beside_archive

    competitions = {}
    for id in ids if len(ids) > 1 else ():
        with suppress(PrerequisiteError):  # reported when it is prepared
            competitions[id] = registry.get_competition(id)
    faults = shared_faults(list(competitions.values()), source, options)
    for fault, count in Counter(faults.values()).items():
        log_line(f"{count} of {len(ids)} competitions cannot be prepared: {fault}")
    outcomes = []
    for id, fault in faults.items():
        where = competitions[id].paths
        lacking = missing_beside_archive(competitions[id], where.root, where.raw)
        reasons = [fault.partition(": ")[0], *([lacking] if lacking else [])]
        outcomes.append(PrepareOutcome(id, "failed", "; ".join(reasons)))
    return outcomes, [id for id in ids if id not in faults]


def _say(outcome: Any, *, one_of_many: bool) -> None:
    """Print one outcome; for a single competition the reason is printed last."""
    why = f": {_reason(outcome)}" if outcome.reason and (one_of_many or outcome.ok) else ""
    log_line(f"{outcome.id}: {outcome.status}{why}")


def _conclude(outcomes: list, data_dir: Path) -> None:
    """Print a table of how each ended, and exit."""
    failed = [outcome for outcome in outcomes if not outcome.ok]
    if len(outcomes) == 1 and failed and failed[0].status != "bug":
        raise failed[0].error or PrerequisiteError(failed[0].reason)
    if len(outcomes) > 1:
        rows = [[outcome.id, outcome.status, _in_one_line(outcome)] for outcome in outcomes]
        print_table(["competition", "status", "reason"], rows)
    elif failed:
        click.echo(failed[0].reason, err=True)
    if len(outcomes) > 1 or not failed:
        click.echo(f"{len(outcomes) - len(failed)} of {len(outcomes)} prepared in {data_dir}", err=True)
    if failed:
        sys.exit(FAILED)


def _reason(outcome: Any) -> str:
    return outcome.reason.removeprefix(f"{outcome.id}: ")


def _in_one_line(outcome: Any) -> str:
    """What fits in a table: the end of a traceback, the beginning of any other reason."""
    lines = _reason(outcome).splitlines() or ["-"]
    return lines[-1] if outcome.status == "bug" else lines[0].removesuffix(":")


def _refuse_contradictions(context: click.Context) -> None:
    """Reject contradictory options."""
    names = {str(option.name): option.opts[-1] for option in context.command.params}
    given_names = [name for name in names if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
    for group in EXCLUSIVE:
        if len(clash := [names[name] for name in given_names if name in group]) > 1:
            raise click.UsageError(f"{' and '.join(clash)} contradict each other: give one of them")
    for name in ("seed", "size"):
        if name in given_names and "twin" not in given_names:
            raise click.UsageError(f"{names[name]} is for twins: give --twin too, or leave it out")


def _chosen(
    registry: Registry, ids: Sequence[str], everything: bool, splits: Sequence[str], listing: Path | None
) -> list[str]:
    """The ids to prepare, each once: everything the options name."""
    if not (ids or everything or splits or listing):
        raise click.UsageError("say what to prepare: -c ID, --lite, --split NAME, --all or --list FILE")
    chosen = [*ids, *(id for split in splits for id in members_of(split, registry))]
    chosen += listed(listing)
    chosen += registry.list_competition_ids() if everything else []
    if not chosen:
        raise click.UsageError(
            f"there is nothing to prepare: {listing or ' '.join(splits) or '--all'} names no competition"
        )
    return list(dict.fromkeys(chosen))
