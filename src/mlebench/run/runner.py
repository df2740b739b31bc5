"""Does the runs of a group, from the request or from where they were interrupted, to the grading report."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from mlebench.core.errors import PrerequisiteError, RequestError, StorageError
from mlebench.core.os_errors import OF_DISKS, reason_of
from mlebench.core.outcomes import RETRIES
from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.data.state import preparation_fault
from mlebench.gateway.access import ModelAccess
from mlebench.records.group import ExecutorConfig
from mlebench.records.run_groups import Group, require_ours, unfinished
from mlebench.registry import Competition
from mlebench.run.executors import SchedulerExecutor
from mlebench.run.gpus import GpuPool, choose_again
from mlebench.run.group_operations import finish, finished_report, reopen, retry_runs, to_do
from mlebench.run.local import LocalExecutor
from mlebench.run.model_usage import require_model
from mlebench.run.plan import make_plan, write_plan
from mlebench.run.request import Request
from mlebench.run.schedulers import choose_executor, refuse_sharing, scheduler_for
from mlebench.sandbox import require_linux

logger = logging.getLogger(__name__)


class GroupProgress:
    """What is to be known while runs are done: derive a class from it, and override what you need."""

    def twins(self, competitions: Sequence[Competition]) -> Iterable[Competition]:
        """Yield the competitions whose twins are about to be prepared."""
        return competitions

    def started(self, group: Group) -> None:
        """Called once, before the first run of a planned or resumed group."""

    def watch(self, group: Group) -> AbstractContextManager[Callable[[], None]]:
        """A context around the runs; what it yields is called a few times a second."""
        del group
        return nullcontext(lambda: None)


class GroupCancelledError(PrerequisiteError):
    """Somebody has cancelled the group with `mlebench runs cancel`."""


class RunsInterrupted(KeyboardInterrupt):
    """Ctrl-C, or SIGTERM. Runs in progress have ended; at a scheduler, they continue."""


def run(request: Request, progress: GroupProgress | None = None) -> Group:
    """Plan a run group, do its runs, grade what they submit, and return the group.

    May be called from any thread; in the main thread, Ctrl-C and SIGTERM end runs in progress, and again at once.
    Check `unfinished(group)`: runs that this machine could not start stay planned.

    Raises PrerequisiteError for anything that would make every run fail, before the first one; StorageError if the
    disk is full, GroupCancelledError and RunsInterrupted if the runs were stopped. `resume` then continues.
    """
    require_linux()
    progress = progress or GroupProgress()
    plan = make_plan(request)
    if request.twin:
        competitions = [plan.registry.get_competition(id) for id in plan.competitions]
        unprepared = [competition for competition in competitions if preparation_fault(competition)]
        for competition in progress.twins(unprepared):
            prepare(competition, TwinSource())
    if plan.model:
        require_model(plan.model, len(plan.competitions) * request.seeds, elsewhere=plan.executor.is_remote)
    group = write_plan(plan)
    progress.started(group)
    return _do_runs(group, request.workers, plan.gpus, plan.executor, progress)


def resume(
    group: Group | Path,
    *,
    retry: Iterable[str] = (),
    workers: int | None = None,
    gpus: str | None = None,
    executor: str | None = None,
    slurm_options: Mapping[str, str] | None = None,
    ray_address: str | None = None,
    progress: GroupProgress | None = None,
) -> Group:
    """Do the runs of a group that have not ended, and return the group. Where nothing is left to do, do nothing.

    `retry` also repeats runs that ended in these ways: `infra`, `failed`, `timeout`. Where the runs take place may
    change; their conditions do not. Raises what `run` raises.
    """
    require_linux()
    progress, kinds = progress or GroupProgress(), tuple(retry)
    if unknown := [kind for kind in kinds if kind not in RETRIES]:
        raise RequestError(f"retry must be one of {', '.join(RETRIES)}, not {unknown[0]!r}")
    group = Group.read(group) if isinstance(group, Path) else group
    require_ours(group)
    record = group.record
    workers = workers or record.workers or 1
    executor_config = choose_executor(executor, slurm_options or {}, ray_address, record.executor)
    if executor_config.is_remote:
        refuse_sharing(record.runs_per_gpu)
        pool = GpuPool()
    else:
        pool = choose_again(gpus, workers, record.gpus_per_run or 0, record.runs_per_gpu)
    if record.model and (count := to_do(group, kinds)):
        require_model(ModelAccess.from_facts(record.model), count, elsewhere=executor_config.is_remote)
    reopen(group, only_here=not executor_config.is_remote)
    progress.started(group)
    if kinds:
        logger.info("Runs to repeat: %d", retry_runs(group, kinds))
    return _do_runs(Group.read(group.paths.root), workers, pool, executor_config, progress)


def _do_runs(
    group: Group, workers: int, gpus: GpuPool, executor_config: ExecutorConfig, progress: GroupProgress
) -> Group:
    if finished_report(group, list(group.runs())):
        return group
    if executor_config.is_remote:
        scheduler = scheduler_for(group, executor_config, workers)
        if warning := scheduler.warning():
            logger.warning("Warning: %s.", warning)
        executor = SchedulerExecutor(scheduler, group.paths)
    else:
        executor = LocalExecutor(group.paths, workers, gpus)
    with progress.watch(group) as tick:
        executor.run(unfinished(group), tick)
    try:
        finish(Group.read(group.paths.root))
    except OSError as error:
        if error.errno not in OF_DISKS:
            raise
        raise StorageError(f"{group.paths.root}: {reason_of(error)}") from error
    if executor.is_cancelled:
        raise GroupCancelledError("Somebody has cancelled this group with `mlebench runs cancel`.")
    if executor.interrupts:
        goes_on = f"Detached: runs that {executor_config.name} has continue; `mlebench runs cancel` ends them."
        raise RunsInterrupted(goes_on if executor_config.is_remote else "Interrupted.")
    return Group.read(group.paths.root)
