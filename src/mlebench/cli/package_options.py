"""The options of `mlebench run` that say which packages a run may install."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from mlebench.cli.quantities import Size


def _names_in(_context: click.Context, _option: click.Parameter, file: Path | None) -> list[str] | None:
    from mlebench.run.packages import read_names

    return None if file is None else read_names(file)


_OPTIONS = (
    click.option(
        "--packages",
        metavar="FOLDER|INDEX",
        help="What agents may install with pip or uv: wheels in a folder, or an index such as https://index.example/simple.",
    ),
    click.option(
        "--packages-before",
        metavar="DATE",
        help="Of an index, only files uploaded before, such as 2024-06-01.",
    ),
    click.option(
        "--packages-allow",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=_names_in,
        help="A file with the only names that agents may install, one per line. Without it, an index unseals runs.",
    ),
    click.option(
        "--packages-limit",
        type=Size(),
        help="The most that each run may fetch. Default: 2g from an index.",
    ),
)


def package_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
