"""How many attempts a run has, and what one may see of those before it. This is decided only here.

An attempt sees nothing of an earlier one. It has its own lease and token, and with them a new working folder, a new
sandbox and a new proxy. What the earlier one left is moved to `attempts/<n>/`, which no sandbox shows. Agents always
start from the beginning.

An agent that was started twice may have had two chances, so every start is counted (`starts` in run.json, and in
standings). How an attempt ended decides what follows:

- The agent ended, or reached a limit: its result counts, and it is never started again. If the result cannot be stored
  or graded now, because a disk is full for example, the run has not ended, and the next `run exec` does only that.
- The infrastructure failed, or the runner, its lease or the supervisor was lost on this host, whoever may have caused
  it: another attempt, until there have been `LOST_STARTS`. Then the run ends as `infra_error`.
- A scheduler or a person stopped it (a signal, a requeued job, a lost node): counted, but not limited. There is another
  attempt whenever one is requested. In a plain process, a signal that the agent may have sent is not one of these: the
  start counts as lost.
- The infrastructure failed before the agent had started: that is held against the host, not against the run. A host
  that fails twice in a row stops taking runs of the group (`hosts.py`). One command tries a run up to `SUBMISSIONS`
  times on one host, or through one scheduler, then leaves it planned.
- mlebench itself crashed after the agent had started, `SUBMISSIONS` times under one local executor: the run ends as
  `infra_error`.
- A scheduler dropped the run before it had ended: one command submits it up to `SUBMISSIONS` times, then leaves it
  planned.
"""

import os
import socket
from collections.abc import Iterable

import msgspec

from mlebench.core.outcomes import INFRA_ERROR
from mlebench.records.run import Attempt

LOST_STARTS = 3
SUBMISSIONS = 3
# What interrupted an attempt (`interrupted_by`).
SIGNAL, SCHEDULER, LOST = "signal", "scheduler", "lost"


def count_starts(attempts: Iterable[Attempt]) -> int:
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


def interrupted_by(attempt: Attempt) -> str:
    """What ended an attempt whose runner was killed: a scheduler, if it was in another job or on another host."""
    elsewhere = attempt.host != socket.gethostname()
    return SCHEDULER if elsewhere or attempt.job != scheduler_job() else LOST


def forgiven(attempts: Iterable[Attempt]) -> list[Attempt]:
    """Attempts as `--retry` leaves them: infrastructure failures, presumably fixed, no longer count."""
    return [msgspec.structs.replace(attempt, forgiven=True) for attempt in attempts]


def failed_before_start(attempt: Attempt) -> bool:
    """Whether the infrastructure failed before the attempt's agent had started: that is held against its host."""
    return attempt.ended == INFRA_ERROR and attempt.agent_started_at is None


def failed_nodes(attempts: Iterable[Attempt]) -> set[str]:
    """Where attempts failed before their agent had started: another node may be able to do the run."""
    return {attempt.node or attempt.host for attempt in attempts if failed_before_start(attempt)}
