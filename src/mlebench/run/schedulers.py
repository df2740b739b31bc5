"""Which scheduler gets a group's runs."""

from mlebench.errors import PrerequisiteError
from mlebench.run.executors import Placement, Scheduler
from mlebench.run.ray_cluster import Ray
from mlebench.run.records import Group
from mlebench.run.slurm import Slurm


def scheduler_for(group: Group, placement: Placement, workers: int) -> Scheduler:
    if placement.name == "slurm":
        return Slurm(group, workers, placement.options)
    if placement.name == "ray":
        return Ray(group, workers, placement.options.get("address"))
    raise PrerequisiteError(
        f"runs of this group are placed by {placement.name!r}, not by a scheduler: press Ctrl-C where they were started"
    )
