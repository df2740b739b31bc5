"""Grades one submission, in this process or in one of its own, with limits.

With limits, a submission that takes far more than the gold submission is invalid, unless gold also takes too much here
and now.
"""

import logging
import math
from concurrent.futures import CancelledError, Future
from pathlib import Path
from threading import Lock

from mlebench.core.errors import NotPreparedError, PrerequisiteError, UnreadableSubmissionError
from mlebench.core.isolate import Calls, IsolatedCallError, call
from mlebench.core.os_errors import reason_of
from mlebench.core.outcomes import GRADER_ERROR, INVALID, LIMIT, NOT_PREPARED
from mlebench.core.untrusted import LARGEST_SUBMISSION, UntrustedFileError, open_untrusted
from mlebench.data.gold import data_stamp, keep_cost, measure_gold, recorded_cost
from mlebench.grade.in_process import (
    GradingJob,
    HashedStream,
    OneCompetition,
    Ungraded,
    Verdict,
    grade_job,
    graded_report,
    ungraded_report,
    unknown_competition,
    with_data,
    with_verdict,
)
from mlebench.grade.limits import Allowance, GradingLimits, size_of
from mlebench.grade.log import log_grade
from mlebench.records.data import GoldCost
from mlebench.registry import Competition, competition_of, make_importable
from mlebench.scoring import CompetitionReport, RunInfo

logger = logging.getLogger(__name__)

MEASURING = 3600.0  # the most seconds to spend on finding out what gold takes
OUT_OF_MEMORY = "there was not enough memory on this machine to grade it"
_PRELOAD = ("mlebench.grade.preload",)

# What gold takes, by the stamp of its data; only one thread at a time measures it.
_costs: dict[str, GoldCost | None] = {}
_measuring: dict[str, Lock] = {}


def grade_csv(
    path_to_submission: Path,
    competition: Competition | str,
    run: RunInfo | None = None,
    *,
    limit: int = LARGEST_SUBMISSION,
    fallback_log_dir: Path | None = None,
    interval: bool = False,
    limits: GradingLimits | None = None,
) -> CompetitionReport:
    """Grade a submission. Only the private folder is needed; a fault of the submission ends as a report.

    A competition may be given by its id; its data is then in the default data directory.
    A submission of more than `limit` bytes is not read. The grade is logged in the data directory, or else in the
    folder `fallback_log_dir`. With `interval`, test rows are resampled many times to show how certain the score is.
    With `limits`, a submission is graded in a process of its own and is invalid if that takes far more time or memory
    than grading the gold submission; limits of your own may be lower.
    """
    path = Path(path_to_submission)
    competition = competition_of(competition)
    if limits is not None:
        size = min(limit, limits.size)
        job = GradingJob(
            OneCompetition(competition),
            competition.id,
            str(path),
            limits._replace(size=size),
            fallback_log_dir,
            run,
            interval,
        )
        outcome = grade_isolated(job)
        if isinstance(outcome, Ungraded):  # raised as without limits
            kind = UnreadableSubmissionError if outcome.status == "bad_entry" else PrerequisiteError
            raise kind(outcome.reason)
        if outcome.status == NOT_PREPARED:
            raise NotPreparedError(outcome.reason)
        return outcome
    report = ungraded_report(path, competition, run)
    try:
        return graded_report(report, competition, limit=limit, fallback_log_dir=fallback_log_dir, interval=interval)
    except MemoryError:
        logger.error("There was not enough memory to grade %s", path)
        report = with_verdict(with_data(report, competition), Verdict(GRADER_ERROR, reason=OUT_OF_MEMORY))
        log_grade(report, competition, fallback_log_dir)
        return report


class Workers(Calls):
    """Grades submissions, several at a time; at the end of the block, unfinished work is no longer wanted."""

    def grade(self, job: GradingJob) -> Future[CompetitionReport | Ungraded]:
        return self.submit(_grade_or_report, job)


def _grade_or_report(job: GradingJob) -> CompetitionReport | Ungraded:
    """Like `grade_isolated`, but if no process starts, the report says so: the batch goes on."""
    try:
        return grade_isolated(job)
    except OSError as error:
        return _dead_report(job, Verdict(GRADER_ERROR, reason=f"no process can be started: {reason_of(error)}"))


def grade_isolated(job: GradingJob) -> CompetitionReport | Ungraded:
    """Grade a submission in a process of its own; OSError if none starts; other faults are in the outcome."""
    competition, cost = _competition_and_cost(job)
    allowed = Allowance.for_size(size_of(job.path), cost, interval=job.interval)
    seconds = min(job.limits.seconds or math.inf, allowed.wall_seconds)
    memory = min(job.limits.memory or math.inf, allowed.memory)
    try:
        return call(grade_job, job, seconds=seconds, cpu_seconds=allowed.seconds, memory=memory, preload=_PRELOAD)
    except IsolatedCallError as error:
        verdict = _verdict(error, job, allowed, competition, cost)
    except (OSError, CancelledError):
        raise
    except Exception as error:
        verdict = Verdict(GRADER_ERROR, reason=f"{type(error).__name__}: {error}")
    logger.log(logging.WARNING if verdict.status == INVALID else logging.ERROR, "%s: %s", job.path, verdict.reason)
    return _dead_report(job, verdict)


def _dead_report(job: GradingJob, verdict: Verdict) -> CompetitionReport | Ungraded:
    """The report where the process died or was ended; logged, because it may have read the answers."""
    try:
        competition = job.registry.get_competition(job.competition_id)
        report = with_data(ungraded_report(Path(job.path), competition, job.run), competition)
    except (PrerequisiteError, OSError) as error:
        return unknown_competition(error)
    report = with_verdict(report, verdict)
    log_grade(report, competition, job.fallback_log_dir)
    return report


def _verdict(
    error: IsolatedCallError,
    job: GradingJob,
    allowed: Allowance,
    competition: Competition | None,
    cost: GoldCost | None,
) -> Verdict:
    """The verdict if there is no report: it says who is at fault."""
    own = job.limits
    match error.limit:
        case "seconds" if own.seconds and own.seconds <= allowed.wall_seconds:
            return Verdict(LIMIT, reason=f"grading took longer than {own.seconds:g} s")
        case "seconds":
            return Verdict(GRADER_ERROR, reason=_stalled(allowed))
        case "memory" if own.memory and own.memory < allowed.memory:
            return Verdict(LIMIT, reason=f"grading took more than {own.memory} bytes of memory")
        case "cpu_seconds":
            amount = f"{allowed.seconds:g} s of CPU time"
        case "memory":
            amount = f"{allowed.memory / 1e9:.1f} GB of memory"
        case "machine":
            return Verdict(GRADER_ERROR, reason=OUT_OF_MEMORY)
        case _:
            return Verdict(GRADER_ERROR, reason=f"the grader failed: {error}")
    return _blame(f"grading took more than {amount}", competition, cost)._replace(sha256=_sha256(job))


def _competition_and_cost(job: GradingJob) -> tuple[Competition | None, GoldCost | None]:
    """The competition, and what its gold submission takes; both None if there is none: grading says what is wrong."""
    try:
        competition = job.registry.get_competition(job.competition_id)
        stamp = data_stamp(competition)
    except (PrerequisiteError, OSError):
        return None, None
    with _measuring.setdefault(stamp, Lock()):
        if stamp not in _costs:
            _costs[stamp] = recorded_cost(competition) or _measured(competition)
    return competition, _costs[stamp]


def _measured(competition: Competition) -> GoldCost | None:
    if cost := _gold_cost_within(competition, MEASURING):
        keep_cost(competition, cost)
    return cost


def _gold_cost_within(
    competition: Competition, seconds: float, cpu_seconds: float = math.inf, memory: float = math.inf
) -> GoldCost | None:
    """What it takes to grade gold now; None if it takes too much, or cannot be graded."""
    try:
        return call(_gold_cost, competition, seconds=seconds, cpu_seconds=cpu_seconds, memory=memory, preload=_PRELOAD)
    except IsolatedCallError:
        return None


def _gold_cost(competition: Competition) -> GoldCost | None:
    """What it takes to grade the gold submission; it is nobody's, so it is not logged. None: it cannot be graded."""
    make_importable(competition.folder.parent)
    return measure_gold(competition)


def _blame(took: str, competition: Competition | None, cost: GoldCost | None) -> Verdict:
    """The verdict if grading took more than it may: the submission is at fault, unless gold takes too much as well."""
    if competition is None or cost is None:
        return Verdict(GRADER_ERROR, reason=f"{took}, and the gold submission cannot be graded for comparison")
    least = Allowance.for_size(cost.size, cost)
    if _gold_cost_within(competition, least.wall_seconds, least.seconds, least.memory) is None:
        return Verdict(GRADER_ERROR, reason=f"{took}, and grading the gold submission takes too much here as well")
    return Verdict(INVALID, reason=f"{took}, the most for a submission of its size in this competition")


def _sha256(job: GradingJob) -> str | None:
    try:
        with open_untrusted(Path(job.path), job.limits.size) as file, HashedStream(file, job.limits.size) as stream:
            return stream.sha256()
    except (UntrustedFileError, PrerequisiteError, OSError):
        return None


def _stalled(allowed: Allowance) -> str:
    return (
        f"grading did not end within {allowed.wall_seconds:g} s, and took less than {allowed.seconds:g} s of CPU time: "
        f"this machine is too busy, or the grader waits for something"
    )
