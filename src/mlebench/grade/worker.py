"""Grades submissions in processes of their own, with limits.

A submission that takes far more than the gold submission is invalid, unless gold also takes too much here and now.
"""

import logging
import math
from concurrent.futures import CancelledError, Future
from pathlib import Path
from threading import Lock

from mlebench.core.errors import PrerequisiteError
from mlebench.core.isolate import Calls, IsolatedCallError, call
from mlebench.core.os_errors import reason_of
from mlebench.core.outcomes import GRADER_ERROR, INVALID, LIMIT
from mlebench.core.untrusted import UntrustedFileError, open_untrusted
from mlebench.data.gold import data_stamp, keep_cost, recorded_cost
from mlebench.grade.hashing import HashedStream
from mlebench.grade.limits import Allowance, size_of
from mlebench.grade.one import Verdict
from mlebench.grade.row import Job, Unjudged, dead_row, gold_cost, grade_row
from mlebench.records.data import GoldCost
from mlebench.registry import Competition
from mlebench.scoring import CompetitionReport

logger = logging.getLogger(__name__)

MEASURING = 3600.0  # the most seconds to spend on finding out what gold takes
OUT_OF_MEMORY = "there was not enough memory on this machine to grade it"
_PRELOAD = ("mlebench.grade.preload",)

# What gold takes, by the stamp of its data; only one thread at a time finds it out.
_costs: dict[str, GoldCost | None] = {}
_measuring: dict[str, Lock] = {}


class Workers(Calls):
    """Grade rows, several at a time; at the end of the block, unfinished work is no longer wanted."""

    def grade(self, job: Job) -> Future[CompetitionReport | Unjudged]:
        return self.submit(_grade, job)


def _grade(job: Job) -> CompetitionReport | Unjudged:
    try:
        return grade_isolated(job)
    except OSError as error:
        return dead_row(job, Verdict(GRADER_ERROR, reason=f"no process can be started: {reason_of(error)}"))


def grade_isolated(job: Job) -> CompetitionReport | Unjudged:
    """Grade a row in its own process; OSError if none can be started, and an outcome whatever else goes wrong."""
    competition, cost = _known(job)
    allowed = Allowance.for_size(size_of(job.path), cost, interval=job.interval)
    seconds = min(job.limits.seconds or math.inf, allowed.wall_seconds)
    memory = min(job.limits.memory or math.inf, allowed.memory)
    try:
        return call(grade_row, job, seconds=seconds, cpu_seconds=allowed.seconds, memory=memory, preload=_PRELOAD)
    except IsolatedCallError as error:
        verdict = _verdict(error, job, allowed, competition, cost)
    except (OSError, CancelledError):
        raise
    except Exception as error:
        verdict = Verdict(GRADER_ERROR, reason=f"{type(error).__name__}: {error}")
    logger.log(logging.WARNING if verdict.status == INVALID else logging.ERROR, "%s: %s", job.path, verdict.reason)
    return dead_row(job, verdict)


def _verdict(
    error: IsolatedCallError, job: Job, allowed: Allowance, competition: Competition | None, cost: GoldCost | None
) -> Verdict:
    """Who is at fault if there is no report."""
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
    return _blamed(f"grading took more than {amount}", competition, cost)._replace(sha256=_sha256(job))


def _known(job: Job) -> tuple[Competition | None, GoldCost | None]:
    """The competition, and what its gold submission takes; grading says what is wrong if there is none."""
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
    if cost := _gold(competition, MEASURING):
        keep_cost(competition, cost)
    return cost


def _gold(
    competition: Competition, seconds: float, cpu_seconds: float = math.inf, memory: float = math.inf
) -> GoldCost | None:
    """What it takes to grade gold now; None if it takes too much, or cannot be graded."""
    try:
        return call(gold_cost, competition, seconds=seconds, cpu_seconds=cpu_seconds, memory=memory, preload=_PRELOAD)
    except IsolatedCallError:
        return None


def _blamed(took: str, competition: Competition | None, cost: GoldCost | None) -> Verdict:
    """Who is at fault if grading took more than it may: the submission, unless gold takes too much as well."""
    if competition is None or cost is None:
        return Verdict(GRADER_ERROR, reason=f"{took}, and the gold submission cannot be graded for comparison")
    least = Allowance.for_size(cost.size, cost)
    if _gold(competition, least.wall_seconds, least.seconds, least.memory) is None:
        return Verdict(GRADER_ERROR, reason=f"{took}, and grading the gold submission takes too much here as well")
    return Verdict(INVALID, reason=f"{took}, the most for a submission of its size in this competition")


def _sha256(job: Job) -> str | None:
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
