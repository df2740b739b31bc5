"""Whether a run is repeated: executors, `run exec`, `--resume` and `--retry` ask here, and nothing else decides it.

| what happened                          | what follows                                        | decided by            |
|----------------------------------------|-----------------------------------------------------|-----------------------|
| the agent ended, or reached a limit    | the run ends; only `--retry` repeats it             | `AttemptVerdict`      |
| it cannot be stored or graded now      | its files are kept; the next `run exec` stores them | `AttemptVerdict`      |
| infrastructure failed after the start  | another attempt; after `LOST_STARTS`, `infra_error` | `is_exhausted`        |
| runner, lease or supervisor lost here  | the same: the agent may have caused it              | `lost_by`             |
| a signal, requeued job or lost node    | another attempt when one is requested; no limit     | `lost_by`             |
| infrastructure failed before the start | another attempt; a host that fails `HOST_FAILURES`  | `failed_before_start` |
|                                        | times in a row takes no more runs (`hosts.py`)      |                       |
| a local executor failed `TRIES` times  | planned; `infra_error` if mlebench itself crashed   | `after_exec`          |
| in a row                               | after the start                                     |                       |
| a scheduler dropped it before its end  | one command submits it `TRIES` times                | `may_be_submitted`    |
| it ended in a way that `--retry` names | planned; a re-roll, unless no fault of the agent    | `is_retried`          |

In a plain process, a signal that the agent may have sent counts as a lost runner.

An attempt sees nothing of an earlier one. It has its own lease and token, and with them a new working folder, a new
sandbox and a new proxy. What the earlier one left is moved to `attempts/<n>/`, which no sandbox shows. Agents always
start from the beginning. An agent that was started twice may have had two chances, so every start is counted (`starts`
in run.json, and in standings).
"""

import os
import socket
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from mlebench.core.outcomes import AGENT_ERROR, CANCELLED, INFRA_ERROR, NOT_THE_AGENTS_FAULT, RETRIES
from mlebench.records.run import Attempt, RunRecord

LOST_STARTS = 3
TRIES = 3
HOST_FAILURES = 2
# What interrupted an attempt (`interrupted_by`).
SIGNAL, SCHEDULER, LOST = "signal", "scheduler", "lost"
# Exit codes of `run exec`.
FINAL, MAY_BE_RETRIED, CANNOT_WORK, NOT_STORED = 0, 75, 2, 74


def result_counts(outcome: str) -> bool:
    """Whether an agent has ended or reached a limit, so that it is never started again for this run."""
    return outcome not in NOT_THE_AGENTS_FAULT


@dataclass(frozen=True)
class AttemptVerdict:
    """What becomes of an attempt: its result counts, or it is closed as `ended` and the run goes on."""

    counts: bool
    ended: str
    interrupted_by: str | None = None

    @classmethod
    def on(cls, outcome: str, stopped_by: str | None, lost_by: str = LOST) -> "AttemptVerdict":
        """The verdict on an attempt that ended this way.

        `stopped_by` is what told it to stop, if anything did; `lost_by` is to blame if the runner is gone.
        """
        if stopped_by and outcome in (AGENT_ERROR, INFRA_ERROR):  # schedulers signal every process
            outcome = CANCELLED
        if outcome == CANCELLED:
            return cls(counts=False, ended=CANCELLED, interrupted_by=stopped_by or lost_by)
        return cls(counts=result_counts(outcome), ended=outcome)


def count_starts(attempts: Iterable[Attempt]) -> int:
    """How often an agent was started."""
    return sum(attempt.agent_started_at is not None for attempt in attempts)


def is_exhausted(attempts: Iterable[Attempt]) -> bool:
    """Whether too many attempts were lost or failed, through no fault of a scheduler, for another one."""
    counted = (attempt for attempt in attempts if not attempt.forgiven)
    lost = (attempt for attempt in counted if attempt.ended == INFRA_ERROR or attempt.interrupted_by == LOST)
    return count_starts(lost) >= LOST_STARTS


def scheduler_job() -> str | None:
    """The job that this process belongs to; another one after Slurm has requeued it."""
    job = os.environ.get("SLURM_JOB_ID")
    return job and f"slurm {job}.{os.environ.get('SLURM_RESTART_COUNT', '0')}"


def lost_by(attempt: Attempt) -> str:
    """What ended an attempt whose runner was killed: a scheduler, if it was in another job or on another host."""
    elsewhere = attempt.host != socket.gethostname()
    return SCHEDULER if elsewhere or attempt.job != scheduler_job() else LOST


def failed_before_start(attempt: Attempt) -> bool:
    """Whether the infrastructure failed before the attempt's agent had started: that is held against its host."""
    return attempt.ended == INFRA_ERROR and attempt.agent_started_at is None


def failed_nodes(attempts: Iterable[Attempt]) -> set[str]:
    """Where attempts failed before their agent had started: another node may be able to do the run."""
    return {attempt.node or attempt.host for attempt in attempts if failed_before_start(attempt)}


class NextStep(Enum):
    """What a local executor does with a run after `run exec`."""

    NOTHING = "it has ended, or its disk has to be mended first"
    TRY_AGAIN = "after a pause"
    LEAVE_PLANNED = "another command, or another host, may do it"
    ABANDON = "end it as infra_error"


def after_exec(record: RunRecord, code: int, failures: int) -> tuple[NextStep, int]:
    """What follows a `run exec` that left this record and exit code, and how often in a row the run has failed.

    `failures` is how often it had failed before: crashes, and attempts whose agent was not started.
    """
    attempt = record.last_attempt
    has_crashed = code != MAY_BE_RETRIED
    failures = failures + 1 if has_crashed or (attempt and failed_before_start(attempt)) else 0
    if record.is_final or code == NOT_STORED:
        return NextStep.NOTHING, failures
    if failures < TRIES:
        return NextStep.TRY_AGAIN, failures
    has_started = attempt is not None and attempt.agent_started_at is not None
    return (NextStep.ABANDON if has_crashed and has_started else NextStep.LEAVE_PLANNED), failures


def may_be_submitted(submissions: int) -> bool:
    """Whether one command submits a run once more that it has submitted this often."""
    return submissions < TRIES


def is_retried(record: RunRecord, kinds: Collection[str]) -> bool:
    """Whether `--retry` with these kinds repeats a run."""
    return any(record.ended in RETRIES[kind] for kind in kinds)


def is_due(record: RunRecord, kinds: Collection[str]) -> bool:
    """Whether `--resume`, with these kinds of `--retry`, does a run."""
    return not record.is_final or is_retried(record, kinds)


def retried(record: RunRecord) -> dict[str, Any]:
    """The fields that `--retry` changes: earlier failures, presumably mended, no longer count, but re-rolls do."""
    return {
        "attempts": [msgspec.structs.replace(attempt, forgiven=True) for attempt in record.attempts],
        "rerolls": (record.rerolls or 0) + (record.ended not in RETRIES["infra"]),
    }
