"""Who places a group's runs: this machine, or a scheduler."""

import re
from collections.abc import Mapping

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError, RequestError
from mlebench.core.settings import read_setting
from mlebench.records.group import RAY, SLURM, ExecutorConfig
from mlebench.records.run_groups import Group
from mlebench.run import ray_cluster, slurm
from mlebench.run.executors import Resources, Scheduler


def choose_executor(
    executor: str | None,
    slurm_options: Mapping[str, str],
    ray_address: str | None,
    recorded: ExecutorConfig | None = None,
) -> ExecutorConfig:
    """The executor that is requested, now or when a group was planned.

    Raises RequestError for options of another executor.
    """
    name = executor or (recorded or ExecutorConfig()).name
    if slurm_options and name != SLURM:
        raise RequestError("--slurm-option needs --executor slurm")
    if ray_address and name != RAY:
        raise RequestError("--ray-address needs --executor ray")
    earlier = recorded.options if recorded and recorded.name == name else None
    if name == SLURM:
        for option in slurm_options:
            if not re.fullmatch("[a-z][a-z-]*", option):
                raise RequestError(f"--slurm-option {option}: write NAME=VALUE, as in partition=gpu")
        return ExecutorConfig(
            name=name, options={**(_slurm_settings() if earlier is None else earlier), **slurm_options}
        )
    return ExecutorConfig(name=name, options={"address": ray_address} if ray_address else earlier or {})


def _slurm_settings() -> dict[str, str]:
    """The sbatch options under `slurm` in the settings; one without a value is a flag."""
    options = read_setting(paths.config_file(), "slurm") or {}
    return {str(name): "" if value in (None, True) else str(value) for name, value in options.items()}


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


def scheduler_for(group: Group, executor_config: ExecutorConfig, workers: int) -> Scheduler:
    if executor_config.name == SLURM:
        return slurm.Slurm(group, workers, executor_config.options)
    if executor_config.name == RAY:
        return ray_cluster.Ray(group, workers, executor_config.options.get("address"))
    raise PrerequisiteError(f"runs of this group are placed by {executor_config.name!r}, not by a scheduler")


def is_reachable(executor_config: ExecutorConfig) -> bool:
    """Whether other commands than the one that submitted runs can reach their scheduler."""
    return executor_config.is_remote and not _is_our_own_ray(executor_config)


def _is_our_own_ray(executor_config: ExecutorConfig) -> bool:
    return executor_config.name == RAY and ray_cluster.is_ours(executor_config.options.get("address"))


def refusal(executor_config: ExecutorConfig, need: Resources) -> str | None:
    """Why runs that need this much could never start, where that is known before they are submitted."""
    if executor_config.name == SLURM:
        return slurm.refusal(need, executor_config.options)
    if executor_config.name == RAY:
        ray_cluster.installed()
    if _is_our_own_ray(executor_config):  # another one may grow
        return ray_cluster.too_large(ray_cluster.connect(None), need)
    return None
