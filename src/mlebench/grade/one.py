"""One submission → its report."""

import hashlib
import json
import logging
import math
from datetime import UTC, datetime
from pathlib import Path

from mlebench import paths
from mlebench.data.state import require_prepared, source_kind
from mlebench.errors import InvalidSubmissionError
from mlebench.registry import Competition
from mlebench.scoring import CompetitionReport, Medals, Thresholds, read_leaderboard
from mlebench.untrusted import FileMissingError, UntrustedFileError
from mlebench.validate.reading import has_csv_name, load_answers, read_submission

logger = logging.getLogger(__name__)


def grade_csv(path_to_submission: Path, competition: Competition) -> CompetitionReport:
    """Grade a submission. Only the private folder is needed; a fault of the submission ends as a report."""
    require_prepared(competition, grading_only=True)
    path = Path(path_to_submission)
    report = make_report(path, competition, *_outcome(path, competition))
    _log_grade(path, competition, report)
    return report


def _outcome(path: Path, competition: Competition) -> tuple[str, float | None, str | None]:
    """Status, score and reason."""
    try:
        if not has_csv_name(path):
            raise FileMissingError("is not named as a CSV file")
        submission = read_submission(path)
    except InvalidSubmissionError as error:
        logger.warning("Invalid submission: %s", error)
        return "invalid", None, str(error)
    except UntrustedFileError as error:
        status = "missing" if isinstance(error, FileMissingError) else "invalid"
        logger.warning("Invalid submission file: %s %s", path, error)
        return status, None, f"the submission {error}"
    try:
        score = competition.grader.score(submission, load_answers(competition.answers))
    except InvalidSubmissionError as error:
        logger.warning("Invalid submission: %s", error)
        return "invalid", None, str(error)
    except Exception as error:
        logger.exception("The grader of %s failed; please report this", competition.id)
        return "grader_error", None, f"{type(error).__name__}: {error}"
    return "graded", score, None if math.isfinite(score) else f"the score is {score}, which is no finite number"


def make_report(
    path: Path, competition: Competition, status: str, score: float | None, reason: str | None
) -> CompetitionReport:
    thresholds = Thresholds.of(read_leaderboard(competition.leaderboard))
    lower = competition.lower_is_better
    medals = Medals.of(score, thresholds, lower=lower)
    return CompetitionReport(
        competition_id=competition.id,
        score=score,
        gold_threshold=thresholds.gold,
        silver_threshold=thresholds.silver,
        bronze_threshold=thresholds.bronze,
        median_threshold=thresholds.median,
        any_medal=medals.gold_medal or medals.silver_medal or medals.bronze_medal,
        gold_medal=medals.gold_medal,
        silver_medal=medals.silver_medal,
        bronze_medal=medals.bronze_medal,
        above_median=medals.above_median,
        submission_exists=status not in ("missing", "not_prepared"),
        valid_submission=score is not None,
        is_lower_better=lower,
        created_at=datetime.now(),
        submission_path=str(path),
        profile=competition.profile,
        source=source_kind(competition),
        status=status,
        reason=reason,
    )


def _log_grade(path: Path, competition: Competition, report: CompetitionReport) -> None:
    """Keep count of every look at the answers; a read-only data directory has no such log."""
    entry = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "competition": competition.id,
        "submission": hashlib.sha256(path.read_bytes()).hexdigest() if report.submission_exists else None,
        "status": report.status,
        "run": None,
    }
    try:
        with paths.grades_log(competition.paths.data_dir).open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")
    except OSError as error:
        logger.debug("this grade was not logged: %s", error)
