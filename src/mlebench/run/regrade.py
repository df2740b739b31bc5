"""Grade the submissions of a run group again: with a newer grader, or with repaired data."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlebench.core import leases
from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import remove_temporaries
from mlebench.core.outcomes import MODEL_UNAVAILABLE, UNGRADED_STATUSES
from mlebench.grade.batch import SubmissionLine, grade_entries
from mlebench.grade.in_process import GradingJob, Ungraded
from mlebench.grade.limits import DEFAULT_LIMITS, GradingLimits
from mlebench.grade.submission import Workers
from mlebench.records.run import PRESENT
from mlebench.records.run_groups import Group, Run, unfinished
from mlebench.registry import Registry
from mlebench.run.grading import run_info
from mlebench.run.group_operations import finish, forget_report
from mlebench.scoring import CompetitionReport

logger = logging.getLogger(__name__)

Tracker = Callable[[list[Run]], Iterable[Run]]


def grade_group(
    group: Group,
    track: Tracker = iter,
    *,
    jobs: int = 1,
    limits: GradingLimits = DEFAULT_LIMITS,
    interval: bool = False,
) -> dict[str, Any]:
    """Grade what the runs submitted, and rewrite and return the group's report.

    A run whose submission could not be judged this time keeps the report it has, and is listed as `unjudged`.
    """
    require_ended(group)
    runs = [run for run in group.runs() if is_gradable(run)]
    unjudged = []
    if not any(True for _ in group.runs()):
        logger.warning("Warning: %s has no runs, so there is nothing to grade", group.paths.root)
    with Workers(jobs) as workers:
        waiting = {
            run.paths.root: workers.grade(job_of(run, group, run.paths.submission, limits, interval=interval))
            for run in runs
        }
        for run in track(runs):
            outcome = waiting[run.paths.root].result()
            if isinstance(outcome, Ungraded) or outcome.status in UNGRADED_STATUSES:
                logger.error("%s: %s", run.paths.root.name, outcome.reason)
                unjudged.append(
                    {"competition_id": run.record.competition, "status": outcome.status, "reason": outcome.reason}
                )
            else:
                with held_for_grading(run):
                    if group.record.report is not None:
                        forget_report(group)
                        group = Group.read(group.paths.root)
                    run.write(report=outcome.to_record())
    path = finish(Group.read(group.paths.root))
    if path is None:
        raise PrerequisiteError(f"a run of {group.paths.root} is being done again: grade the group when it has ended")
    logger.info("Saved summary report to %s", path)
    return json.loads(path.read_bytes()) | {"unjudged": unjudged}


def grade_reference_group(
    group: Group,
    registry: Registry,
    track: Callable[[list[SubmissionLine]], Iterable[SubmissionLine]] = iter,
    *,
    jobs: int = 1,
    limits: GradingLimits = DEFAULT_LIMITS,
    interval: bool = False,
) -> dict[str, Any]:
    """Grade the submissions of a group that the reference wrote, with the data of a registry.

    Only a new grading report is written, where tools of the reference look for it: beside metadata.json. A run
    without a submission counts as one with none; one that cannot be judged this time keeps the report it has.
    """
    runs = list(enumerate(group.runs(), 1))
    entries = [
        SubmissionLine(number, run.record.competition, str(run.paths.submission), run=run_info(run, group))
        for number, run in runs
    ]
    if not entries:
        logger.warning("Warning: %s has no runs, so there is nothing to grade", group.paths.root)
    earlier = {number: CompetitionReport.from_record(run.record.report) for number, run in runs if run.record.report}
    options = {"jobs": jobs, "limits": limits, "interval": interval, "earlier": earlier}
    return grade_entries(entries, group.paths.metadata, group.paths.root, registry, track, **options)


def is_gradable(run: Run) -> bool:
    """Whether a run has a submission that counts."""
    return run.record.submission == PRESENT and run.record.ended != MODEL_UNAVAILABLE


def require_ended(group: Group) -> None:
    """While a run is in progress, nothing in its group is graded: the score could reach an agent."""
    if open_ := unfinished(group):
        raise PrerequisiteError(
            f"{len(open_)} runs of {group.paths.root} have not ended: finish them with `mlebench run --resume`"
        )


def job_of(run: Run, group: Group, submission: Path, limits: GradingLimits, *, interval: bool = False) -> GradingJob:
    registry, info = Registry(group.record.data_dir, group.record.profile), run_info(run, group)
    return GradingJob(registry, run.record.competition, str(submission), limits, group.paths.root, info, interval)


@contextmanager
def held_for_grading(run: Run) -> Iterator[None]:
    """Hold the run's lease, so that nobody repeats the run meanwhile; checks that nobody already has."""
    lease = leases.acquire(run.paths.leases, wait=False)
    try:
        if lease is None or Run.read(run.paths.root).record != run.record:
            raise PrerequisiteError(f"{run.paths.root} is being done again: grade the group when it has ended")
        remove_temporaries(run.paths.record, run.paths.over_time)
        yield
    finally:
        if lease is not None:
            lease.release()
