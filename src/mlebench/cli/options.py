"""Options shared by several verbs, and what they mean."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from mlebench import paths
from mlebench.cli.output import say
from mlebench.registry import Registry
from mlebench.untrusted import LARGEST_SUBMISSION


def judging_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option("--strict", is_flag=True, help="Exit code 1 also for an invalid or missing submission.")(
        command
    )
    return click.option(
        "--max-bytes",
        "limit",
        type=click.IntRange(min=1),
        default=LARGEST_SUBMISSION,
        show_default=True,
        help="Largest submission that is read; a larger one is invalid.",
    )(command)


data_dir_option = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, readable=False, path_type=Path),
    help=f"Where the data is. Default: ${paths.DATA_DIR_VARIABLE}, or a folder in the user's cache.",
)


profile_option = click.option(
    "--profile",
    type=click.Choice(paths.PROFILES),
    default=paths.PROFILES[0],
    show_default=True,
    help="v1: same as the reference. v2: corrected data and graders, where a competition has them.",
)


def registry_at(data_dir: Path | None, profile: str = paths.PROFILES[0], *, twin: bool = False) -> Registry:
    return Registry(data_dir or paths.default_data_dir(twin=twin), profile)


def members_of(split: str, registry: Registry) -> list[str]:
    """The competitions of a split that the registry's profile has; says how many it lacks."""
    members, known = registry.get_split(split), set(registry.list_competition_ids())
    if missing := [id for id in members if id not in known]:
        say(
            f"{len(missing)} of the {len(members)} competitions of split {split} have no profile {registry.profile} yet"
        )
    return [id for id in members if id in known]


def twin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    size = click.FloatRange(min=0, min_open=True)
    command = click.option("--size", type=size, default=1.0, show_default=True, help="Scale of a twin's files.")(
        command
    )
    return click.option("--seed", default=0, show_default=True, help="Seed of a twin.")(command)
