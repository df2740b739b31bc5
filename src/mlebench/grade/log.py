"""Append-only log of gradings."""

import errno
import json
import logging
import os
from functools import cache
from pathlib import Path

from mlebench.core.os_errors import reason_of
from mlebench.core.paths import grades_log
from mlebench.data.open_runs import open_runs
from mlebench.records import Record, now
from mlebench.registry import Competition
from mlebench.scoring import CompetitionReport

logger = logging.getLogger(__name__)


class Grade(Record, frozen=True, kw_only=True):
    """One line of the log."""

    time: str
    competition: str
    profile: str
    submission_sha256: str | None
    status: str
    agent: str | None = None
    seed: int | None = None
    run_id: str | None = None
    graded_during_run: bool = False


def log_grade(report: CompetitionReport, competition: Competition, otherwise: Path | None = None) -> None:
    """Append to the log in the data directory or, if there is none or it is not writable, in another folder.

    Competitions that clients built themselves have no data directory, and their folders are not ours to write to.
    """
    grade = Grade(
        time=report.graded_at or report.created_at.isoformat(),
        competition=report.competition_id,
        profile=report.profile,
        submission_sha256=report.submission_sha256,
        status=report.status,
        agent=report.agent,
        seed=report.seed,
        run_id=report.run_id,
        graded_during_run=report.graded_during_run,
    )
    if fault := _fault_of_logging(grade, competition.data_dir, otherwise):
        logger.warning("This grade was not logged: %s", fault)


def log_validation(competition: Competition, status: str, sha256: str) -> None:
    """Append that a submission was compared with the answers without a report; what prevents it is said once."""
    grade = Grade(
        time=now(),
        competition=competition.id,
        profile=competition.profile,
        submission_sha256=sha256,
        status=status,
        graded_during_run=bool(open_runs(competition)),
    )
    if fault := _fault_of_logging(grade, competition.data_dir):
        _warn_once(f"Validations are not logged: {fault}")


@cache
def _warn_once(message: str) -> None:
    logger.warning("%s", message)


def _fault_of_logging(grade: Grade, *folders: Path | None) -> str | None:
    """Append to the log in the first of the folders that is writable; otherwise the reasons."""
    line = f"{json.dumps(grade.to_dict())}\n".encode()
    faults = []
    for folder in filter(None, folders):
        path = grades_log(folder)
        try:
            _append(path, line)
        except OSError as error:
            faults.append(f"cannot write to {path}: {reason_of(error)}")
        else:
            return None
    return "; ".join(faults) or None


def _append(path: Path, line: bytes) -> None:
    """In one write, so that lines of several processes do not mix; after a line that a full disk cut, on a new one."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        if os.write(descriptor, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(descriptor)
