"""Grade the submissions of a run group again: with a newer grader, or with data that was mended."""

import json
import logging
from collections.abc import Callable, Iterable
from typing import Any

from mlebench.errors import PrerequisiteError
from mlebench.grade.row import DEFAULT_LIMITS, NOT_JUDGED, Job, Limits, Unjudged
from mlebench.grade.worker import Workers
from mlebench.registry import Registry
from mlebench.run import lease as leases
from mlebench.run.grading import run_info
from mlebench.run.group import finish, unfinished
from mlebench.run.records import PRESENT, Group, Run
from mlebench.scoring import CompetitionReport

logger = logging.getLogger(__name__)

Tracker = Callable[[list[Run]], Iterable[Run]]


def regrade(
    group: Group,
    track: Tracker = iter,
    *,
    jobs: int = 1,
    limits: Limits = DEFAULT_LIMITS,
    interval: bool = False,
) -> dict[str, Any]:
    """Grade what the runs have submitted and write the group's report anew; it is returned.

    A run whose submission could not be judged this time keeps the report that it has, and is listed as `unjudged`.
    """
    if open_ := unfinished(group):
        raise PrerequisiteError(
            f"{len(open_)} runs of {group.paths.root} have not ended: finish them with `mlebench run --resume`"
        )
    runs = [run for run in group.runs() if run.record.submission == PRESENT]
    unjudged = []
    with Workers(jobs) as workers:
        waiting = {run.paths.root: workers.grade(_job(run, group, limits, interval)) for run in runs}
        for run in track(runs):
            outcome = waiting[run.paths.root].result()
            if isinstance(outcome, Unjudged) or outcome.status in NOT_JUDGED:
                logger.error("%s: %s", run.paths.root.name, outcome.reason)
                unjudged.append(
                    {"competition_id": run.record.competition, "status": outcome.status, "reason": outcome.reason}
                )
            else:
                _replace_report(run, outcome)
    path = finish(Group.read(group.paths.root))
    if path is None:
        raise PrerequisiteError(f"a run of {group.paths.root} is being done again: grade the group when it has ended")
    logger.info("Saved summary report to %s", path)
    return json.loads(path.read_bytes()) | {"unjudged": unjudged}


def _job(run: Run, group: Group, limits: Limits, interval: bool) -> Job:
    registry = Registry(group.record.data_dir, group.record.profile)
    return Job(
        registry,
        run.record.competition,
        str(run.paths.submission),
        limits,
        group.paths.root,
        run_info(run, group),
        interval,
    )


def _replace_report(run: Run, report: CompetitionReport) -> None:
    """Under the run's lease: nobody may do the run again meanwhile."""
    lease = leases.acquire(run.paths.leases, wait=False)
    try:
        if lease is None or Run.read(run.paths.root).record != run.record:
            raise PrerequisiteError(f"{run.paths.root} is being done again: grade the group when it has ended")
        run.write(report=report.to_dict())
    finally:
        if lease is not None:
            lease.release()
