"""The options of `mlebench run`, `runs cancel` and `doctor` that say where runs take place."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from mlebench.records.group import EXECUTORS


def executor_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--ray-address",
            metavar="ADDRESS",
            help="A running Ray cluster. Default: $RAY_ADDRESS, or a new one on this machine.",
        ),
        click.option(
            "--slurm-option",
            "slurm_options",
            multiple=True,
            metavar="NAME=VALUE",
            callback=_pairs,
            help="An sbatch option, such as partition=gpu; may be repeated. Defaults: `slurm:` in the settings.",
        ),
        click.option(
            "--executor",
            type=click.Choice(EXECUTORS),
            help="Where runs take place. Default: local or, for an existing group, where it was.",
        ),
    ):
        command = option(command)
    return command


def _pairs(_context: click.Context, _option: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    parts = (text.removeprefix("--").partition("=") for text in texts)
    return {name: value for name, _, value in parts}
