"""Whether a run is repeated, rule by rule; what a run's folder looks like then is tested with real runs elsewhere."""

import socket

import msgspec
import pytest

from mlebench.core.outcomes import RUN_OUTCOMES
from mlebench.records.run import ENDED, Attempt, RunRecord
from mlebench.run.retry_rules import (
    LOST,
    LOST_STARTS,
    MAY_BE_RETRIED,
    NOT_STORED,
    SCHEDULER,
    SIGNAL,
    TRIES,
    AttemptVerdict,
    NextStep,
    after_exec,
    is_due,
    is_exhausted,
    is_retried,
    lost_by,
    may_be_submitted,
    retried,
)

NOW = "2026-01-01T00:00:00+00:00"
CRASH = 1


def attempt(ended: str | None = "infra_error", **fields: object) -> Attempt:
    attempt = Attempt(number=1, token="a", host=socket.gethostname(), started_at=NOW, ended=ended, agent_started_at=NOW)
    return msgspec.structs.replace(attempt, **fields)


def record(*attempts: Attempt, **fields: object) -> RunRecord:
    record = RunRecord(run_id="r", competition="c", seed=0, planned_at=NOW, attempts=list(attempts))
    return record.changed(**fields)


@pytest.mark.parametrize("outcome", RUN_OUTCOMES)
@pytest.mark.parametrize("stopped_by", [None, SIGNAL, LOST])
def test_an_attempt_counts_if_its_agent_ended_by_itself_or_reached_a_limit(
    outcome: str, stopped_by: str | None
) -> None:
    verdict = AttemptVerdict.on(outcome, stopped_by)
    if stopped_by and outcome in ("agent_error", "infra_error"):  # our signal reached it, too
        assert verdict == AttemptVerdict(counts=False, ended="cancelled", interrupted_by=stopped_by)
    elif outcome == "cancelled":
        assert verdict == AttemptVerdict(counts=False, ended="cancelled", interrupted_by=stopped_by or LOST)
    else:
        assert verdict.counts == (outcome not in ("infra_error", "model_unavailable"))
        assert verdict.ended == outcome


def test_a_lost_runner_is_a_schedulers_doing_only_in_another_job_or_on_another_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert lost_by(attempt(None, job="slurm 7.1")) == LOST
    assert lost_by(attempt(None, job="slurm 7.0")) == SCHEDULER  # it was requeued
    assert lost_by(attempt(None, job="slurm 7.1", host="elsewhere")) == SCHEDULER


def test_a_run_is_given_up_after_three_starts_that_were_lost() -> None:
    lost = attempt("cancelled", interrupted_by=LOST)
    assert is_exhausted([lost, attempt(), lost][:LOST_STARTS])
    assert not is_exhausted([lost, attempt()])
    for harmless in (
        attempt("cancelled", interrupted_by=SIGNAL),
        attempt("cancelled", interrupted_by=SCHEDULER),
        attempt(agent_started_at=None),
        attempt(forgiven=True),
    ):
        assert not is_exhausted([lost, attempt(), *[harmless] * 9])


def test_a_local_executor_tries_three_times_in_a_row() -> None:
    before_start = record(attempt(agent_started_at=None))
    for failures, step in enumerate([NextStep.TRY_AGAIN] * (TRIES - 1) + [NextStep.LEAVE_PLANNED]):
        assert after_exec(before_start, MAY_BE_RETRIED, failures) == (step, failures + 1)
    after_start = record(attempt())
    assert after_exec(after_start, MAY_BE_RETRIED, TRIES) == (NextStep.TRY_AGAIN, 0)
    assert after_exec(after_start, CRASH, TRIES - 1) == (NextStep.ABANDON, TRIES)
    assert after_exec(record(), CRASH, TRIES - 1) == (NextStep.LEAVE_PLANNED, TRIES)
    assert after_exec(after_start, NOT_STORED, 0)[0] is NextStep.NOTHING
    assert after_exec(record(state=ENDED), CRASH, TRIES)[0] is NextStep.NOTHING


def test_one_command_submits_a_run_three_times() -> None:
    assert [may_be_submitted(count) for count in range(5)] == [True] * TRIES + [False] * (5 - TRIES)


@pytest.mark.parametrize(
    ("ended", "kind", "is_reroll"),
    [
        ("infra_error", "infra", False),
        ("model_unavailable", "infra", False),
        ("agent_error", "failed", True),
        ("out_of_memory", "failed", True),
        ("over_disk", "failed", True),
        ("timeout", "timeout", True),
        ("finished", None, False),
    ],
)
def test_retry_repeats_what_it_names_and_counts_re_rolls(ended: str, kind: str | None, is_reroll: bool) -> None:
    run = record(attempt(), state=ENDED, ended=ended, rerolls=2)
    for name in ("infra", "failed", "timeout"):
        assert is_retried(run, [name]) == is_due(run, [name]) == (name == kind)
    assert is_due(record(), [])
    assert not is_due(run, [])
    if kind:
        changed = run.changed(**retried(run))
        assert changed.rerolls == 2 + is_reroll
        assert all(attempt.forgiven for attempt in changed.attempts)
