"""Where runs take place: the options of `mlebench run` and `mlebench doctor` that name an executor."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.settings import read_setting

if TYPE_CHECKING:
    from mlebench.records.group import Placement
    from mlebench.records.run_groups import Group

EXECUTORS = ("local", "slurm", "ray")


def placement_options(command: Callable[..., Any]) -> Callable[..., Any]:
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


def placement_of(
    executor: str | None, slurm_options: Sequence[str], ray_address: str | None, group: "Group | None" = None
) -> "Placement":
    """What was asked for, now or when a group was planned; options of an executor that is not used are refused."""
    from mlebench.records.group import Placement

    recorded = group.record.executor if group else Placement()
    name = executor or recorded.name
    if slurm_options and name != "slurm":
        raise click.UsageError("--slurm-option needs --executor slurm")
    if ray_address and name != "ray":
        raise click.UsageError("--ray-address needs --executor ray")
    earlier = recorded.options if group and recorded.name == name else None
    if name == "slurm":
        return Placement(
            name=name, options={**(_slurm_settings() if earlier is None else earlier), **_pairs(slurm_options)}
        )
    return Placement(name=name, options={"address": ray_address} if ray_address else earlier or {})


def _slurm_settings() -> dict[str, str]:
    """The sbatch options under `slurm` in the settings; one without a value is a flag."""
    found = read_setting(paths.config_file(), "slurm") or {}
    return {str(name): "" if value in (None, True) else str(value) for name, value in found.items()}


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, _, value = text.removeprefix("--").partition("=")
        if not re.fullmatch("[a-z][a-z-]*", name):
            raise click.UsageError(f"--slurm-option {text}: write NAME=VALUE, as in partition=gpu")
        found[name] = value
    return found


def gpus_per_run(text: str | None, runs_per_gpu: int) -> int:
    """The number of GPUs to ask for: a scheduler chooses the devices itself, and gives each to one run."""
    refuse_sharing(runs_per_gpu)
    if text in (None, "none"):
        return 0
    if not text.isdigit():
        raise PrerequisiteError(
            f"--gpus {text}: with Slurm and Ray, give the number of GPUs for each run, as in --gpus 1"
        )
    return int(text)


def refuse_sharing(runs_per_gpu: int) -> None:
    if runs_per_gpu > 1:
        raise PrerequisiteError(
            f"--runs-per-gpu {runs_per_gpu}: Slurm and Ray give each GPU to one run; leave it out, or run without them"
        )
