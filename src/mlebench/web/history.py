"""What happened in a run, and when: attempts, kept submissions, and their scores if known."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from mlebench.core.errors import PrerequisiteError
from mlebench.core.outcomes import CANCELLED
from mlebench.core.untrusted import UntrustedFileError, open_below
from mlebench.records.base import parse, seconds_of
from mlebench.records.run import RUNNING, Attempt
from mlebench.records.run_groups import Run
from mlebench.records.snapshots import SnapshotScores
from mlebench.web.facts import number_of
from mlebench.web.remains import Place, listing, short, shown

MOST_ATTEMPTS = 50
MOST_SCORES = 4 << 20  # bytes of the file that holds them


def zero_of(run: Run) -> float | None:
    """The zero of a run's clock, in seconds since the epoch: its agent's start, from which its time limit counts."""
    return seconds_of(run.record.agent_started_at)


def kept_submissions(place: Place) -> list[dict[str, Any]]:
    """When each submission was kept, in seconds since its agent's start, and how large it was."""
    found = []
    for file in listing(place.base, "snapshots").files:
        try:
            found.append({"seconds": float(file["name"].removesuffix(".csv")), "size": file["size"]})
        except ValueError:
            continue
    return sorted((one for one in found if number_of(one["seconds"]) is not None), key=lambda one: one["seconds"])


def timeline(run: Run, kept: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A run's attempts and what else is known, for a drawing and as a list."""
    record = run.record
    attempts = [_attempt(attempt, run) for attempt in record.attempts[-MOST_ATTEMPTS:]]
    attempts = [one for one in attempts if one["begin"] is not None]
    zero = zero_of(run)
    drawn: dict[str, Any] = {"begin": None, "end": None, "zero": zero, "attempts": attempts, "kept": []}
    if attempts:
        last = attempts[-1]
        drawn["begin"] = attempts[0]["begin"]
        drawn["kept"] = [min(last["agent_began"] + one["seconds"], last["end"]) for one in kept]
        drawn["end"] = max(one["end"] for one in attempts)
    return drawn | {"events": _events(run, attempts, kept, zero)}


def _attempt(attempt: Attempt, run: Run) -> dict[str, Any]:
    begin, end = seconds_of(attempt.started_at), seconds_of(attempt.ended_at)
    agent_began = seconds_of(attempt.agent_started_at)
    goes_on = run.record.state == RUNNING and attempt is run.record.last_attempt
    return {
        "number": attempt.number,
        "host": short(attempt.host, 80),
        "begin": begin,
        "agent_began": begin if agent_began is None else agent_began,
        "is_agent_start_known": agent_began is not None,
        "end": time.time() if goes_on else max(end or 0.0, begin or 0.0),
        "ended": None if goes_on else short(attempt.ended or CANCELLED, 40),
        "detail": shown(attempt.detail),
        "forgiven": attempt.forgiven,
    }


def _events(
    run: Run, attempts: Sequence[dict[str, Any]], kept: Sequence[dict[str, Any]], zero: float | None
) -> list[dict[str, Any]]:
    record = run.record
    events = [_event(seconds_of(record.planned_at), "planned", "Planned", None, zero)]
    for one in attempts:
        is_last = one is attempts[-1]
        name = f"Attempt {one['number']}" if len(attempts) > 1 else "Started"
        events.append(_event(one["begin"], "started", f"{name} on {one['host']}", None, zero))
        if is_last and one["is_agent_start_known"]:
            events.append(_event(one["agent_began"], "started", "Agent started", None, zero))
        if is_last:
            events += _kept_events(one["agent_began"], kept, zero)
        if one["ended"] is not None and not (is_last and record.is_final):
            text = f"Attempt {one['number']} ended: {one['ended'].replace('_', ' ')}"
            events.append(_event(one["end"], one["ended"], text, one["detail"], zero))
    if record.is_final:
        how = short(record.ended or "unknown", 40)
        text = f"Ended: {how.replace('_', ' ')}"
        events.append(_event(seconds_of(record.ended_at), how, text, shown(record.detail), zero))
    return events


def _kept_events(begin: float, kept: Sequence[dict[str, Any]], zero: float | None) -> list[dict[str, Any]]:
    if not kept:
        return []
    words = ["First submission kept", "Last submission kept"] if len(kept) > 1 else ["Submission kept"]
    ends = [kept[0], kept[-1]][: len(words)]
    events = [_event(begin + one["seconds"], "kept", text, None, zero) for text, one in zip(words, ends, strict=True)]
    if len(kept) > 2:
        events[-1]["text"] += f", {len(kept)} in all"
    return events


def _event(at: float | None, kind: str, text: str, detail: str | None, zero: float | None) -> dict[str, Any]:
    return {
        "at": None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds"),
        "after": None if at is None or zero is None else at - zero,
        "kind": kind,
        "text": text,
        "detail": detail,
    }


def scores(run: Run) -> list[dict[str, Any]]:
    """What the kept submissions would have earned, once they have been graded."""
    path = run.paths.over_time
    try:
        with open_below(run.paths.root, path.relative_to(run.paths.root).parts, MOST_SCORES) as file:
            points = parse(file.read(), SnapshotScores, path).points
    except (UntrustedFileError, PrerequisiteError, OSError):
        return []
    return [{"seconds": point.seconds, "score": point.score, "status": point.status} for point in points]
