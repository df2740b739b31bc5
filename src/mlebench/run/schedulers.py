"""Which scheduler gets a group's runs."""

from mlebench.core.errors import PrerequisiteError
from mlebench.records.group import Placement
from mlebench.records.run_groups import Group
from mlebench.run import ray_cluster, slurm
from mlebench.run.executors import Resources, Scheduler


def scheduler_for(group: Group, placement: Placement, workers: int) -> Scheduler:
    if placement.name == "slurm":
        return slurm.Slurm(group, workers, placement.options)
    if placement.name == "ray":
        return ray_cluster.Ray(group, workers, placement.options.get("address"))
    raise PrerequisiteError(f"runs of this group are placed by {placement.name!r}, not by a scheduler")


def is_reachable(placement: Placement) -> bool:
    """Whether other commands than the one that submitted runs can reach their scheduler."""
    return placement.is_remote and not _is_our_own_ray(placement)


def _is_our_own_ray(placement: Placement) -> bool:
    return placement.name == "ray" and ray_cluster.is_ours(placement.options.get("address"))


def refusal(placement: Placement, need: Resources) -> str | None:
    """Why runs that need this much could never start, where that is known before they are submitted."""
    if placement.name == "slurm":
        return slurm.refusal(need, placement.options)
    if _is_our_own_ray(placement):  # another one may grow
        return ray_cluster.too_large(ray_cluster.connect(None), need)
    return None
