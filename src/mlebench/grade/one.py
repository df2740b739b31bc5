"""One submission → its report, in this process."""

import logging
import math
import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from mlebench import __version__
from mlebench.core.errors import (
    CompetitionError,
    InvalidSubmissionError,
    NotPreparedError,
    PrerequisiteError,
    UnreadableSubmissionError,
)
from mlebench.core.os_errors import OF_DISKS, reason_of
from mlebench.core.outcomes import INFRA_ERROR, MISSING, MODEL_UNAVAILABLE, NOT_PREPARED
from mlebench.core.untrusted import FileMissingError, UntrustedFileError, open_untrusted
from mlebench.data.answers import answers_for_grader
from mlebench.data.open_runs import open_runs
from mlebench.data.state import data_identity, description_kind, require_prepared, source_kind
from mlebench.grade.board import Standing
from mlebench.grade.hashing import HashedStream
from mlebench.grade.log import log_grade
from mlebench.records import now
from mlebench.registry import Competition
from mlebench.scoring import CompetitionReport, Medals, RunInfo, Thresholds, read_leaderboard
from mlebench.validate.reading import has_csv_name, read_table

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

WITHOUT_SUBMISSION = (MISSING, NOT_PREPARED, MODEL_UNAVAILABLE, INFRA_ERROR)  # or without one that counts


class Verdict(NamedTuple):
    """How a submission was judged."""

    status: str
    score: float | None = None
    reason: str | None = None
    sha256: str | None = None
    drawn: list[float] | None = None  # scores of draws of test rows


def graded_report(
    report: CompetitionReport, competition: Competition, *, limit: int, log_otherwise: Path | None, interval: bool
) -> CompetitionReport:
    """Grade the submission of `report` and return the completed report; a MemoryError is left to the caller."""
    path = Path(report.submission_path)
    _require_answers(competition)
    competition.grader.require_packages()
    report = with_verdict(with_data(report, competition), _verdict(path, competition, limit, interval))
    report = _with_standing(report, competition)
    log_grade(report, competition, log_otherwise)
    return report


def _with_standing(report: CompetitionReport, competition: Competition) -> CompetitionReport:
    """The sample submission's score on a twin is not known, so nothing is normalised by it."""
    board = read_leaderboard(competition.leaderboard)
    standing = Standing.of(report.score, competition, board, report.gold_threshold)
    if report.source == "twin":
        standing = standing._replace(normalised_score=None)
    return replace(report, **standing._asdict())


def _require_answers(competition: Competition) -> None:
    try:
        require_prepared(competition, grading_only=True)
        with competition.answers.open("rb"):
            pass
    except OSError as error:
        raise _unreadable(competition, error) from error


def _unreadable(competition: Competition, error: OSError) -> NotPreparedError:
    where = error.filename or competition.answers
    return NotPreparedError(f"{competition.id} cannot be graded: cannot use {where}: {reason_of(error)}")


def _verdict(path: Path, competition: Competition, limit: int, interval: bool) -> Verdict:
    try:
        if str(path) == "None":  # how the reference records that an agent left nothing
            raise FileMissingError("was not named")
        if not has_csv_name(path):
            is_folder = os.path.isdir(path)  # noqa: PTH112 a Path would raise for a name that is too long
            raise FileMissingError("is a folder" if is_folder else "does not have a name that ends in .csv")
        with open_untrusted(path, limit) as file, HashedStream(file, limit) as stream:
            return _verdict_on(stream, competition, interval)
    except UntrustedFileError as error:
        # A name that is not valid text would break readers of the log.
        shown = str(path).encode("utf-8", "backslashreplace").decode("utf-8")
        shown = "the submission" if shown == "None" else shown
        logger.warning("Invalid submission file: %s %s", shown, error)
        status = "missing" if isinstance(error, FileMissingError) else "invalid"
        return Verdict(status, reason=f"the submission {error}")
    except NotPreparedError:
        raise
    except PrerequisiteError as error:
        raise UnreadableSubmissionError(str(error)) from error
    except OSError as error:
        raise UnreadableSubmissionError(f"cannot read {path}: {reason_of(error)}") from error


def _verdict_on(stream: HashedStream, competition: Competition, interval: bool) -> Verdict:
    try:
        submission = read_table(cast("BinaryIO", stream))
    except InvalidSubmissionError as error:
        return _invalid(error, stream.sha256())
    sha256 = stream.sha256()
    kept = submission.copy() if interval else None  # a grader may change what it is given
    try:
        score = competition.grader.score(submission, answers_for_grader(competition.answers))
    except InvalidSubmissionError as error:
        return _invalid(error, sha256)
    except MemoryError:
        raise
    except CompetitionError as error:
        logger.error("The grader of %s failed: %s", competition.id, error)
        return Verdict("grader_error", None, str(error), sha256)
    except (Exception, SystemExit) as error:
        if isinstance(error, OSError) and error.errno in OF_DISKS:  # of the answers, or for temporary files
            raise _unreadable(competition, error) from error
        logger.exception("The grader of %s failed; please report this", competition.id)
        return Verdict("grader_error", None, f"{type(error).__name__}: {error}", sha256)
    fault = None if math.isfinite(score) else f"the score is {score}, which is not a finite number"
    return Verdict("graded", score, fault, sha256, _drawn(kept, competition, score) if kept is not None else None)


def _drawn(submission: "pd.DataFrame", competition: Competition, score: float) -> list[float] | None:
    from mlebench.grade.interval import drawn_scores

    answers = answers_for_grader(competition.answers)
    return drawn_scores(competition.grader, submission, answers, competition.submission, score)


def _invalid(error: InvalidSubmissionError, sha256: str) -> Verdict:
    logger.warning("Invalid submission: %s", error)
    return Verdict("invalid", None, str(error), sha256)


def ungraded_report(path: Path, competition: Competition, run: RunInfo | None = None) -> CompetitionReport:
    """What is known before the submission and the answers are read."""
    board = read_leaderboard(competition.leaderboard)
    figures: dict[str, Any] = dict.fromkeys(
        (*Medals._fields, "any_medal", "submission_exists", "valid_submission"), False
    )
    figures |= {f"{name}_threshold": value for name, value in Thresholds.of(board)._asdict().items()}
    return CompetitionReport(
        **figures,
        competition_id=competition.id,
        score=None,
        is_lower_better=competition.lower_is_better,
        created_at=datetime.now(),
        submission_path=str(path),
        profile=competition.profile,
        status="not_prepared",
        mlebench=__version__,
        graded_at=now(),
        competition_version=competition.version,
        agent=run.agent if run else None,
        seed=run.seed if run else None,
        run_id=run.run_id if run else None,
        teams=len(board),
        known_issues=len(competition.known_issues),
    )


def with_data(report: CompetitionReport, competition: Competition) -> CompetitionReport:
    """Add facts about the data, and whether agents may be working on it: a run's own grade tells them nothing."""
    return replace(
        report,
        source=source_kind(competition),
        data=data_identity(competition),
        description=description_kind(competition),
        graded_during_run=report.run_id is None and bool(open_runs(competition)),
    )


def with_verdict(report: CompetitionReport, verdict: Verdict) -> CompetitionReport:
    thresholds = Thresholds(
        report.gold_threshold, report.silver_threshold, report.bronze_threshold, report.median_threshold
    )
    medals = Medals.of(verdict.score, thresholds, lower=report.is_lower_better)
    if verdict.score is not None and verdict.drawn is not None:
        from mlebench.grade.interval import interval_of

        interval = interval_of(verdict.score, verdict.drawn, thresholds, lower=report.is_lower_better)
        report = replace(report, **interval._asdict())
    return replace(
        report,
        **medals._asdict(),
        score=verdict.score,
        any_medal=medals.gold_medal or medals.silver_medal or medals.bronze_medal,
        submission_exists=verdict.status not in WITHOUT_SUBMISSION,
        valid_submission=verdict.score is not None,
        status=verdict.status,
        reason=verdict.reason,
        submission_sha256=verdict.sha256,
    )
