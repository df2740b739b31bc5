"""One row of a batch → its report, or why it has none. Faults of a row are never raised."""

import logging
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from mlebench.core.errors import PrerequisiteError, UnreadableSubmissionError
from mlebench.core.os_errors import explanation
from mlebench.data.gold import measure_gold
from mlebench.grade.limits import DEFAULT_LIMITS, Limits
from mlebench.grade.log import log_grade
from mlebench.grade.one import Verdict, graded_report, ungraded_report, with_data, with_verdict
from mlebench.records.data import GoldCost
from mlebench.registry import Competition, make_importable
from mlebench.scoring import CompetitionReport, RunInfo

logger = logging.getLogger(__name__)


class HasCompetitions(Protocol):
    def get_competition(self, competition_id: str) -> Competition: ...


class OneCompetition(NamedTuple):
    """Takes the place of a registry for a caller that already has the competition."""

    competition: Competition

    def get_competition(self, competition_id: str) -> Competition:  # noqa: ARG002
        make_importable(self.competition.folder.parent)  # wherever its code is
        return self.competition


class Job(NamedTuple):
    """What a process needs to grade a row."""

    registry: HasCompetitions
    competition_id: str
    path: str
    limits: Limits = DEFAULT_LIMITS
    log_otherwise: Path | None = None
    run: RunInfo | None = None
    interval: bool = False


class Unjudged(NamedTuple):
    """A row without a report: `bad_entry`, or `unknown_competition`."""

    status: str
    reason: str

    def to_dict(self, line: int, competition_id: str | None) -> dict[str, Any]:
        return {"line": line, "competition_id": competition_id, **self._asdict()}


def grade_row(job: Job) -> CompetitionReport | Unjudged:
    """The caller decides what a MemoryError means."""
    path = Path(job.path)
    try:
        competition = job.registry.get_competition(job.competition_id)
        blank = ungraded_report(path, competition, job.run)
    except (PrerequisiteError, OSError) as error:
        return _unknown(error)
    try:
        return graded_report(
            blank, competition, limit=job.limits.size, log_otherwise=job.log_otherwise, interval=job.interval
        )
    except UnreadableSubmissionError as error:
        return Unjudged("bad_entry", str(error))
    except PrerequisiteError as error:
        logger.error("%s", error)
        return with_verdict(blank, Verdict("not_prepared", reason=str(error)))
    except MemoryError:
        raise
    except Exception as error:
        logger.exception("Grading %s failed; please report this", path)
        return with_verdict(blank, Verdict("grader_error", reason=f"{type(error).__name__}: {error}"))


def gold_cost(competition: Competition) -> GoldCost | None:
    """What it takes to grade the gold submission; it is nobody's, so it is not logged. None: it cannot be graded."""
    make_importable(competition.folder.parent)
    return measure_gold(competition)


def dead_row(job: Job, verdict: Verdict) -> CompetitionReport | Unjudged:
    """A row whose process died or was ended. The answers may have been looked at, so this is logged as a grade."""
    try:
        competition = job.registry.get_competition(job.competition_id)
        report = with_data(ungraded_report(Path(job.path), competition, job.run), competition)
    except (PrerequisiteError, OSError) as error:
        return _unknown(error)
    report = with_verdict(report, verdict)
    log_grade(report, competition, job.log_otherwise)
    return report


def _unknown(error: PrerequisiteError | OSError) -> Unjudged:
    """There is no such competition, or its folder cannot be read."""
    return Unjudged("unknown_competition", (isinstance(error, OSError) and explanation(error)) or str(error))
