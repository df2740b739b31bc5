"""What happened in a run, and when: attempts, kept submissions, and their scores if known."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime

from mlebench.core.errors import PrerequisiteError
from mlebench.core.outcomes import CANCELLED
from mlebench.core.untrusted import UntrustedFileError, one_line, open_below
from mlebench.records.base import parse, seconds_of
from mlebench.records.run import RUNNING, Attempt
from mlebench.records.run_groups import Run
from mlebench.records.snapshots import SnapshotScores
from mlebench.web.record_values import number_of
from mlebench.web.run_files import AttemptFiles, listing, shown
from mlebench.web.views import AttemptView, ScorePoint, View

MOST_ATTEMPTS = 50
MOST_SCORES = 4 << 20  # bytes of the file that holds them


class KeptSubmission(View):
    seconds: float  # since the agent's start
    size: int | None


class EventView(View):
    at: str | None
    after: float | None  # seconds since the agent's start
    kind: str
    text: str
    detail: str | None


class TimelineView(View):
    """A run's attempts and what else is known, for a drawing and as a list; times are in seconds since the epoch."""

    begin: float | None
    end: float | None
    zero: float | None
    attempts: list[AttemptView]
    kept: list[float]
    events: list[EventView]


def zero_of(run: Run) -> float | None:
    """The zero of a run's clock, in seconds since the epoch: its agent's start, from which its time limit counts."""
    return seconds_of(run.record.agent_started_at)


def kept_submissions(files: AttemptFiles) -> list[KeptSubmission]:
    """When each submission was kept, and how large it was."""
    submissions = []
    for file in listing(files.base, "snapshots").files:
        try:
            submissions.append(KeptSubmission(seconds=float(file.name.removesuffix(".csv")), size=file.size))
        except ValueError:
            continue
    known = (submission for submission in submissions if number_of(submission.seconds) is not None)
    return sorted(known, key=lambda submission: submission.seconds)


def timeline(run: Run, kept: Sequence[KeptSubmission]) -> TimelineView:
    attempts = [view for attempt in run.record.attempts[-MOST_ATTEMPTS:] if (view := _attempt(attempt, run))]
    zero = zero_of(run)
    last = attempts[-1] if attempts else None
    return TimelineView(
        begin=attempts[0].begin if attempts else None,
        end=max((attempt.end for attempt in attempts), default=None),
        zero=zero,
        attempts=attempts,
        kept=[min(last.agent_began + submission.seconds, last.end) for submission in kept] if last else [],
        events=_events(run, attempts, kept, zero),
    )


def _attempt(attempt: Attempt, run: Run) -> AttemptView | None:
    """An attempt; None if it is not known when it began."""
    begin, end = seconds_of(attempt.started_at), seconds_of(attempt.ended_at)
    if begin is None:
        return None
    agent_began = seconds_of(attempt.agent_started_at)
    goes_on = run.record.state == RUNNING and attempt is run.record.last_attempt
    return AttemptView(
        number=attempt.number,
        host=one_line(attempt.host, 80),
        begin=begin,
        agent_began=begin if agent_began is None else agent_began,
        is_agent_start_known=agent_began is not None,
        end=time.time() if goes_on else max(end or 0.0, begin),
        ended=None if goes_on else one_line(attempt.ended or CANCELLED, 40),
        detail=shown(attempt.detail),
        forgiven=attempt.forgiven,
    )


def _events(
    run: Run, attempts: Sequence[AttemptView], submissions: Sequence[KeptSubmission], zero: float | None
) -> list[EventView]:
    record = run.record
    events = [_event(seconds_of(record.planned_at), "planned", "Planned", None, zero)]
    for attempt in attempts:
        is_last = attempt is attempts[-1]
        name = f"Attempt {attempt.number}" if len(attempts) > 1 else "Started"
        events.append(_event(attempt.begin, "started", f"{name} on {attempt.host}", None, zero))
        if is_last and attempt.is_agent_start_known:
            events.append(_event(attempt.agent_began, "started", "Agent started", None, zero))
        if is_last:
            events += _kept_events(attempt.agent_began, submissions, zero)
        if attempt.ended is not None and not (is_last and record.is_final):
            text = f"Attempt {attempt.number} ended: {attempt.ended.replace('_', ' ')}"
            events.append(_event(attempt.end, attempt.ended, text, attempt.detail, zero))
    if record.is_final:
        ended = one_line(record.ended or "unknown", 40)
        text = f"Ended: {ended.replace('_', ' ')}"
        events.append(_event(seconds_of(record.ended_at), ended, text, shown(record.detail), zero))
    return events


def _kept_events(begin: float, submissions: Sequence[KeptSubmission], zero: float | None) -> list[EventView]:
    """The first and the last submission."""
    if not submissions:
        return []
    if len(submissions) == 1:
        return [_event(begin + submissions[0].seconds, "kept", "Submission kept", None, zero)]
    in_all = f", {len(submissions)} in all" if len(submissions) > 2 else ""
    return [
        _event(begin + submissions[0].seconds, "kept", "First submission kept", None, zero),
        _event(begin + submissions[-1].seconds, "kept", f"Last submission kept{in_all}", None, zero),
    ]


def _event(at: float | None, kind: str, text: str, detail: str | None, zero: float | None) -> EventView:
    return EventView(
        at=None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds"),
        after=None if at is None or zero is None else at - zero,
        kind=kind,
        text=text,
        detail=detail,
    )


def scores(run: Run) -> list[ScorePoint]:
    """What the kept submissions would have earned, once they have been graded."""
    path = run.paths.over_time
    try:
        with open_below(run.paths.root, path.relative_to(run.paths.root).parts, MOST_SCORES) as file:
            points = parse(file.read(), SnapshotScores, path).points
    except (UntrustedFileError, PrerequisiteError, OSError):
        return []
    return [ScorePoint(seconds=point.seconds, score=point.score, status=point.status) for point in points]
