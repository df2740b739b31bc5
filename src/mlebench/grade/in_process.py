"""Grades one submission in this process: reads it, calls the competition's grader, makes the report."""

import hashlib
import io
import logging
import math
import os
from collections.abc import Sized
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol, cast

from mlebench import __version__
from mlebench.config import RELEASES
from mlebench.core.errors import (
    CompetitionError,
    InvalidSubmissionError,
    NotPreparedError,
    PrerequisiteError,
    UnreadableSubmissionError,
)
from mlebench.core.os_errors import OF_DISKS, explanation, reason_of
from mlebench.core.outcomes import (
    GRADED,
    GRADER_ERROR,
    INFRA_ERROR,
    INVALID,
    MISSING,
    MODEL_UNAVAILABLE,
    NOT_PREPARED,
)
from mlebench.core.untrusted import FileMissingError, FileTooLargeError, UntrustedFileError, open_untrusted
from mlebench.data.answers import answers_for_grader
from mlebench.data.open_runs import open_runs
from mlebench.data.state import data_identity, description_kind, require_prepared, source_kind
from mlebench.grade.badges import badges_of, badges_to_text
from mlebench.grade.groups import count_groups, hash_of_groups, read_groups
from mlebench.grade.leaderboard import Position
from mlebench.grade.limits import DEFAULT_LIMITS, Limits
from mlebench.grade.log import log_grade
from mlebench.records import now
from mlebench.registry import Competition, make_importable
from mlebench.scoring import CompetitionReport, Medals, RunInfo, Thresholds, read_leaderboard
from mlebench.validate.submission_table import has_csv_name, read_table

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)

_CHUNK = 1 << 20  # bytes
WITHOUT_SUBMISSION = (MISSING, NOT_PREPARED, MODEL_UNAVAILABLE, INFRA_ERROR)  # or without one that counts


class HasCompetitions(Protocol):
    def get_competition(self, competition_id: str) -> Competition: ...


class OneCompetition(NamedTuple):
    """Takes the place of a registry for a caller that already has the competition."""

    competition: Competition

    def get_competition(self, competition_id: str) -> Competition:  # noqa: ARG002
        make_importable(self.competition.folder.parent)  # wherever its code is
        return self.competition


class GradingJob(NamedTuple):
    """What a process needs to grade a submission."""

    registry: HasCompetitions
    competition_id: str
    path: str
    limits: Limits = DEFAULT_LIMITS
    fallback_log_dir: Path | None = None
    run: RunInfo | None = None
    interval: bool = False


class Ungraded(NamedTuple):
    """Why a submission has no report: `bad_entry`, `unknown_competition` or, under two profiles, `not_comparable`."""

    status: str
    reason: str

    def to_dict(self, line: int, competition_id: str | None) -> dict[str, Any]:
        return {"line": line, "competition_id": competition_id, **self._asdict()}


def grade_job(job: GradingJob) -> CompetitionReport | Ungraded:
    """The report of a submission, or why it has none. Only a MemoryError is raised: callers decide what it means."""
    path = Path(job.path)
    try:
        competition = job.registry.get_competition(job.competition_id)
        blank = ungraded_report(path, competition, job.run)
    except (PrerequisiteError, OSError) as error:
        return unknown_competition(error)
    try:
        return graded_report(
            blank, competition, limit=job.limits.size, fallback_log_dir=job.fallback_log_dir, interval=job.interval
        )
    except UnreadableSubmissionError as error:
        return Ungraded("bad_entry", str(error))
    except PrerequisiteError as error:
        return with_verdict(blank, Verdict(NOT_PREPARED, reason=str(error)))
    except MemoryError:
        raise
    except Exception as error:
        logger.exception("Grading %s failed; please report this", path)
        return with_verdict(blank, Verdict(GRADER_ERROR, reason=f"{type(error).__name__}: {error}"))


class HashedStream(io.BufferedIOBase):
    """Hashes the bytes that are graded, while they are read; stops at the limit, even if the file grows meanwhile."""

    def __init__(self, stream: BinaryIO, limit: int):
        self._stream = stream
        self._limit = limit
        self._size = 0
        self._ended = False
        self._hash = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        allowed = self._limit + 1 - self._size
        wanted = allowed if size is None or size < 0 else min(size, allowed)
        data = b"" if self._ended else self._stream.read(wanted)
        self._ended = self._ended or len(data) < wanted  # bytes appended from now on do not count
        self._size += len(data)
        if self._size > self._limit:
            raise FileTooLargeError(f"has more than {self._limit} bytes, the most that are read")
        self._hash.update(data)
        return data

    def read1(self, size: int = -1, /) -> bytes:
        return self.read(_CHUNK if size < 0 else size)

    def sha256(self) -> str:
        """The hash of the whole stream; the unread rest is read now."""
        while self.read(_CHUNK):
            pass
        return self._hash.hexdigest()


class Verdict(NamedTuple):
    """How a submission was judged."""

    status: str
    score: float | None = None
    reason: str | None = None
    sha256: str | None = None
    drawn: list[float] | None = None  # scores of draws of test rows
    test_units: int | None = None


def graded_report(
    report: CompetitionReport, competition: Competition, *, limit: int, fallback_log_dir: Path | None, interval: bool
) -> CompetitionReport:
    """Grade the submission of `report` and return the completed report; a MemoryError is left to the caller."""
    path = Path(report.submission_path)
    _require_answers(competition)
    competition.grader.require_packages()
    report = with_verdict(with_data(report, competition), _verdict(path, competition, limit, interval))
    report = _with_badges(_with_position(report, competition), competition)
    log_grade(report, competition, fallback_log_dir)
    return report


def _with_position(report: CompetitionReport, competition: Competition) -> CompetitionReport:
    """Add where the score stands; on a twin it is not normalised, because the sample submission's score is unknown."""
    board = read_leaderboard(competition.leaderboard)
    position = Position.of(report.score, competition, board, Thresholds.of(board).gold)
    if report.source == "twin":
        position = position._replace(normalised_score=None)
    return replace(report, **position._asdict())


def _with_badges(report: CompetitionReport, competition: Competition) -> CompetitionReport:
    if report.score is None:
        return report
    badges = badges_of(competition.known_issues, report.test_units, report.medal_holds)
    return replace(report, badges=badges_to_text(badges))


def _require_answers(competition: Competition) -> None:
    try:
        require_prepared(competition, grading_only=True)
        with competition.answers.open("rb"):
            pass
    except OSError as error:
        raise _unreadable(competition, error) from error


def _unreadable(competition: Competition, error: OSError) -> NotPreparedError:
    path = error.filename or competition.answers
    return NotPreparedError(f"{competition.id} cannot be graded: cannot use {path}: {reason_of(error)}")


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
        status = MISSING if isinstance(error, FileMissingError) else INVALID
        return Verdict(status, reason=f"the submission {error}")
    except NotPreparedError:
        raise
    except PrerequisiteError as error:
        raise UnreadableSubmissionError(str(error)) from error
    except OSError as error:
        raise UnreadableSubmissionError(f"cannot read {path}: {reason_of(error)}") from error


def _verdict_on(stream: HashedStream, competition: Competition, interval: bool) -> Verdict:
    try:
        submission = read_table(cast("BinaryIO", stream), competition)
    except InvalidSubmissionError as error:
        return _invalid(error, stream.sha256())
    sha256 = stream.sha256()
    unchanged = submission.copy() if interval else None  # a grader may change what it is given
    groups = read_groups(competition) if interval else None
    try:
        answers = answers_for_grader(competition)
        test_units = _test_units(competition, answers)
        score = competition.grader.score(submission, answers)
    except InvalidSubmissionError as error:
        return _invalid(error, sha256)
    except MemoryError:
        raise
    except CompetitionError as error:
        logger.error("The grader of %s failed: %s", competition.id, error)
        return Verdict(GRADER_ERROR, None, str(error), sha256)
    except (Exception, SystemExit) as error:
        if isinstance(error, OSError) and error.errno in OF_DISKS:  # of the answers, or for temporary files
            raise _unreadable(competition, error) from error
        logger.exception("The grader of %s failed; please report this", competition.id)
        return Verdict(GRADER_ERROR, None, f"{type(error).__name__}: {error}", sha256)
    del answers  # they are read again to draw rows: not twice in memory
    fault = None if math.isfinite(score) else f"the score is {score}, which is not a finite number"
    drawn = _drawn(unchanged, competition, score, groups) if unchanged is not None else None
    return Verdict(GRADED, score, fault, sha256, drawn, test_units)


def _test_units(competition: Competition, answers: Sized) -> int:
    """How many groups the test rows form, where the profile groups them, or else how many rows the answers have."""
    return count_groups(competition) or len(answers)


def _drawn(
    submission: "pd.DataFrame", competition: Competition, score: float, groups: dict[Any, str] | None
) -> list[float] | None:
    from mlebench.grade.interval import drawn_scores

    answers = answers_for_grader(competition)
    return drawn_scores(competition.grader, submission, answers, competition.submission, score, groups)


def _invalid(error: InvalidSubmissionError, sha256: str) -> Verdict:
    logger.warning("Invalid submission: %s", error)
    return Verdict(INVALID, None, str(error), sha256)


def ungraded_report(path: Path, competition: Competition, run: RunInfo | None = None) -> CompetitionReport:
    """A report with what is known before the submission and the answers are read."""
    board = read_leaderboard(competition.leaderboard)
    thresholds = Thresholds.of(board).withholding(competition.medals_withheld)
    medals = Medals.of(None, thresholds, lower=competition.lower_is_better)
    figures: dict[str, Any] = dict.fromkeys(("submission_exists", "valid_submission"), False)
    figures |= {**medals._asdict(), "any_medal": medals.any_medal}
    figures |= {f"{name}_threshold": value for name, value in thresholds._asdict().items()}
    return CompetitionReport(
        **figures,
        competition_id=competition.id,
        score=None,
        is_lower_better=competition.lower_is_better,
        created_at=datetime.now(),
        submission_path=str(path),
        profile=competition.profile,
        status=NOT_PREPARED,
        mlebench=__version__,
        graded_at=now(),
        competition_version=competition.version,
        agent=run.agent if run else None,
        seed=run.seed if run else None,
        run_id=run.run_id if run else None,
        teams=len(board),
        known_issues=len(competition.known_issues),
        board=competition.board,
        release=RELEASES.get(competition.profile),
    )


def with_data(report: CompetitionReport, competition: Competition) -> CompetitionReport:
    """Add facts about the data, and whether agents may be working on it: a run's own grade tells them nothing."""
    return replace(
        report,
        source=source_kind(competition),
        data=data_identity(competition),
        description=description_kind(competition),
        groups=hash_of_groups(competition),
        graded_during_run=report.run_id is None and bool(open_runs(competition)),
    )


def with_verdict(report: CompetitionReport, verdict: Verdict) -> CompetitionReport:
    """Add how the submission was judged: status, score, medals and, if rows were drawn, the score's interval."""
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
        any_medal=medals.any_medal,
        submission_exists=verdict.status not in WITHOUT_SUBMISSION,
        valid_submission=verdict.score is not None,
        status=verdict.status,
        reason=verdict.reason,
        submission_sha256=verdict.sha256,
        test_units=verdict.test_units,
    )


def unknown_competition(error: PrerequisiteError | OSError) -> Ungraded:
    """The outcome where there is no such competition, or its folder cannot be read."""
    return Ungraded("unknown_competition", (isinstance(error, OSError) and explanation(error)) or str(error))
