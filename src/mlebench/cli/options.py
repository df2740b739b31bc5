"""Options shared by several verbs, and what they mean."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from mlebench.cli.console import log_line
from mlebench.cli.quantities import PositiveNumber, Size
from mlebench.core import paths
from mlebench.core.untrusted import LARGEST_SUBMISSION
from mlebench.registry import Registry


def judging_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option("--strict", is_flag=True, help="Exit code 1 also for an invalid or missing submission.")(
        command
    )
    return click.option(
        "--max-bytes",
        "limit",
        type=Size(),
        default=LARGEST_SUBMISSION,
        help="Largest submission that is read; a larger one is invalid. Default: 8 GiB.",
    )(command)


FOLDER = click.Path(file_okay=False, readable=False, path_type=Path)
_DATA_DIR: dict[str, Any] = {
    "type": FOLDER,
    "help": f"Where the data is. Default: ${paths.DATA_DIR_VARIABLE}, or a folder in the user's cache.",
}
_RUNS_DIR: dict[str, Any] = {"type": FOLDER, "help": "Where run groups are kept. Default: beside the data."}

data_dir_option = click.option("--data-dir", **_DATA_DIR)
runs_dir_option = click.option("--runs-dir", **_RUNS_DIR)


def runs_dirs_at(runs_dir: Path | None, data_dir: Path | None) -> tuple[Path, ...]:
    """Where run groups are looked for: in --runs-dir, or beside the data: first real data, then twins."""
    if runs_dir:
        return (runs_dir,)
    data_dirs = (registry_at(data_dir, twin=twin).get_data_dir() for twin in (False, True))
    return tuple(dict.fromkeys(map(paths.default_runs_dir, data_dirs)))


def runs_dir_at(runs_dir: Path | None, data_dir: Path | None) -> Path:
    return runs_dirs_at(runs_dir, data_dir)[0]


@dataclass
class FolderOptions:
    """What a verb that has commands, or the command itself, was told about folders."""

    runs_dir: Path | None = None
    data_dir: Path | None = None

    @property
    def registry(self) -> Registry:
        return registry_at(self.data_dir)

    @property
    def runs_dirs(self) -> tuple[Path, ...]:
        return runs_dirs_at(self.runs_dir, self.data_dir)


def folder_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--runs-dir and --data-dir, before or after a command's name; they are the context's `FolderOptions`."""

    def keep(context: click.Context, option: click.Parameter, value: Path | None) -> None:
        folders = context.ensure_object(FolderOptions)
        if value is not None:
            setattr(folders, str(option.name), value)

    command = click.option("--data-dir", expose_value=False, callback=keep, **_DATA_DIR)(command)
    return click.option("--runs-dir", expose_value=False, callback=keep, **_RUNS_DIR)(command)


competitions_option = click.option(
    "-c", "--competition-id", "ids", multiple=True, metavar="ID", help="A competition; may be repeated."
)
all_option = click.option("-a", "--all", "everything", is_flag=True, help="All competitions.")
splits_option = click.option(
    "--split", "splits", multiple=True, metavar="NAME", help="The competitions of a split; may be repeated."
)
json_option = click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
output_option = click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A file to write to instead of stdout."
)


def listing_option(*also: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "-l",
        "--list",
        *also,
        "listing",
        type=click.Path(exists=True, dir_okay=False, readable=False, path_type=Path),
        help="A text file with one id per line; # starts a comment.",
    )


def listed(listing: Path | None) -> list[str]:
    """The ids in a text file, if there is one."""
    if listing is None:
        return []
    try:
        lines = listing.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise click.UsageError(f"{listing} is not UTF-8 text: it should hold one id per line") from None
    return [id for line in lines for id in line.partition("#")[0].split()]


profile_option = click.option(
    "--profile",
    type=click.Choice(paths.PROFILES),
    default=paths.PROFILES[0],
    show_default=True,
    help="v1: same as the reference. v2: corrected data and graders, where a competition has them.",
)


BOTH_PROFILES = ",".join(paths.PROFILES)
profiles_option = click.option(
    "--profile",
    type=click.Choice((*paths.PROFILES, BOTH_PROFILES)),
    default=paths.PROFILES[0],
    show_default=True,
    help="v1: same as the reference. v2: corrected data and graders, where a competition has them. "
    f"{BOTH_PROFILES}: both scores of submissions made on v1's data, where both have the same test rows.",
)


def registry_at(data_dir: Path | None, profile: str = paths.PROFILES[0], *, twin: bool = False) -> Registry:
    return Registry(data_dir or paths.default_data_dir(twin=twin), profile)


def members_of(split: str, registry: Registry) -> list[str]:
    """The competitions of a split that the registry's profile has; says how many it lacks."""
    members, known = registry.get_split(split), set(registry.list_competition_ids())
    if missing := [id for id in members if id not in known]:
        log_line(
            f"{len(missing)} of the {len(members)} competitions of split {split} have no profile {registry.profile} yet"
        )
    return [id for id in members if id in known]


def twin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option(
        "--size", type=PositiveNumber(), default=1.0, show_default=True, help="Scale of a twin's files."
    )(command)
    seeds = click.IntRange(0, 2**32 - 1)  # numpy's own range
    return click.option("--seed", type=seeds, default=0, show_default=True, help="Seed of a twin.")(command)
