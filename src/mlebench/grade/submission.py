"""Grades one submission, in this process or in a limited one."""

import logging
from pathlib import Path

from mlebench.core.errors import NotPreparedError, PrerequisiteError, UnreadableSubmissionError
from mlebench.core.outcomes import GRADER_ERROR, NOT_PREPARED
from mlebench.core.untrusted import LARGEST_SUBMISSION
from mlebench.grade.limits import Limits
from mlebench.grade.log import log_grade
from mlebench.grade.one import Verdict, graded_report, ungraded_report, with_data, with_verdict
from mlebench.grade.row import Job, OneCompetition, Unjudged
from mlebench.grade.worker import OUT_OF_MEMORY, grade_isolated
from mlebench.registry import Competition, competition_of
from mlebench.scoring import CompetitionReport, RunInfo

logger = logging.getLogger(__name__)


def grade_csv(
    path_to_submission: Path,
    competition: Competition | str,
    run: RunInfo | None = None,
    *,
    limit: int = LARGEST_SUBMISSION,
    log_otherwise: Path | None = None,
    interval: bool = False,
    limits: Limits | None = None,
) -> CompetitionReport:
    """Grade a submission. Only the private folder is needed; a fault of the submission ends as a report.

    A competition may be given by its id; its data is then in the default data directory.
    A submission of more than `limit` bytes is not read. The grade is logged in the data directory, or else in the
    folder `log_otherwise`. With `interval`, test rows are resampled many times to show how certain the score is.
    With `limits`, a submission is graded in a process of its own and is invalid if that takes far more time or memory
    than grading the gold submission; limits of your own may be lower.
    """
    path = Path(path_to_submission)
    competition = competition_of(competition)
    if limits is not None:
        size = min(limit, limits.size)
        job = Job(
            OneCompetition(competition),
            competition.id,
            str(path),
            limits._replace(size=size),
            log_otherwise,
            run,
            interval,
        )
        return _graded_isolated(job)
    report = ungraded_report(path, competition, run)
    try:
        return graded_report(report, competition, limit=limit, log_otherwise=log_otherwise, interval=interval)
    except MemoryError:
        logger.error("There was not enough memory to grade %s", path)
        report = with_verdict(with_data(report, competition), Verdict(GRADER_ERROR, reason=OUT_OF_MEMORY))
        log_grade(report, competition, log_otherwise)
        return report


def _graded_isolated(job: Job) -> CompetitionReport:
    """Raises what grading in this process would raise."""
    outcome = grade_isolated(job)
    if isinstance(outcome, Unjudged):
        kind = UnreadableSubmissionError if outcome.status == "bad_entry" else PrerequisiteError
        raise kind(outcome.reason)
    if outcome.status == NOT_PREPARED:
        raise NotPreparedError(outcome.reason)
    return outcome
