"""How many attempts a run has, and what one may see of those before it. This is decided only here.

An attempt sees nothing of an earlier one. It has its own lease and token, and with them a new working folder, a new
sandbox and a new door. What the earlier one left is moved to `attempts/<n>/`, which no sandbox shows. Agents always
start from the beginning.

How an attempt ended decides what follows:

- The agent ended, or reached a limit: its result counts, and the run has ended.
- The infrastructure failed: another attempt, until `INFRA_ATTEMPTS` have failed. Then the run ends as `infra_error`.
- It was stopped or killed (Ctrl-C, preemption, a lost node): it does not count. There is another attempt whenever one
  is requested.
- mlebench itself crashed, `CRASHES` times under one local executor: the run ends as `infra_error`.
- A scheduler dropped the run before it had ended: one command submits it up to `SUBMISSIONS` times, then leaves it
  planned.
"""

from collections.abc import Iterable
from typing import Any

from mlebench.outcomes import INFRA_ERROR

INFRA_ATTEMPTS = 3
CRASHES = 3
SUBMISSIONS = 3

Attempts = list[dict[str, Any]]


def is_exhausted(attempts: Iterable[dict[str, Any]]) -> bool:
    """Whether the infrastructure has failed too often for another attempt."""
    failed = [item for item in attempts if item.get("ended") == INFRA_ERROR and not item.get("forgiven")]
    return len(failed) >= INFRA_ATTEMPTS


def forgiven(attempts: Iterable[dict[str, Any]]) -> Attempts:
    """Attempts as `--retry` leaves them: infrastructure failures, presumably fixed, no longer count."""
    return [attempt | {"forgiven": True} for attempt in attempts]
