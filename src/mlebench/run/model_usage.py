"""A run's use of a model: its gateway during the run, and what is known about its calls."""

import logging
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from mlebench.core.errors import PrerequisiteError
from mlebench.core.outcomes import AGENT_ERROR, FINISHED, MODEL_UNAVAILABLE, TIMEOUT
from mlebench.core.untrusted import plain
from mlebench.gateway.access import ModelAccess
from mlebench.gateway.fields import opening
from mlebench.gateway.outage import Outage
from mlebench.gateway.proxy import GatewayProxy
from mlebench.records.group import GroupRecord, ModelFacts
from mlebench.records.run import RunRecord
from mlebench.records.usage import ModelUsage, read_usage
from mlebench.run.packages import is_open
from mlebench.sandbox import sandbox_named
from mlebench.sandbox.base import Task
from mlebench.sandbox.session import TaskOutcome

logger = logging.getLogger(__name__)

# Ends that may come from a model that never answered; the others are of the agent's own making.
_MAY_LACK_A_MODEL = (FINISHED, AGENT_ERROR, TIMEOUT)


def require_model(access: ModelAccess, runs: int, *, elsewhere: bool = False) -> None:
    """Refuse runs whose key is missing here or, before the first of several, whose model cannot be called.

    What may be gone by the time runs begin is only said: a busy endpoint or, if runs take place elsewhere, one that
    cannot be reached from here.
    """
    from mlebench.gateway.probe import probe

    access.key()
    for model, outage in probe(access).items() if runs > 1 else ():
        reason = f"{model} at {access.endpoint} cannot be used ({outage.cause}): {outage.says}; {outage.advice(access)}"
        if outage.is_permanent and not (elsewhere and outage.is_local):
            raise PrerequisiteError(reason)
        logger.warning("Warning: %s", reason)


def open_model(record: GroupRecord, task: Task) -> AbstractContextManager[GatewayProxy | None]:
    """The gateway of a run, if it should have one."""
    if record.network != "model":
        return nullcontext()
    if record.model is None:
        raise PrerequisiteError("this run group has a network `model` but names no model: plan it again")
    return GatewayProxy(task.name, ModelAccess.from_facts(record.model), task.work, task.limits.seconds)


def unsealed_by(record: GroupRecord) -> list[str]:
    """What weakens the seal of a group's runs, in words; nothing if they are sealed."""
    if record.sandbox == "host":
        return ["the agent sees the answers"]
    sandbox = sandbox_named(record.sandbox)
    opened = record.model or ModelFacts(provider="", endpoint="", models=[])
    return [
        *([] if sandbox.is_isolated else [f"the sandbox is {sandbox.noun}"]),
        *(["the network is open"] if record.network == "full" else []),
        *(["packages come from an open index"] if is_open(record) else []),
        *(["the container is privileged"] if record.agent.privileged else []),
        *(f"the provider may use {tool}" for tool in opened.tools),
        *(f"requests may have the field {name}" for name in opening(opened.fields)),
    ]


def _outage_of(usage: ModelUsage | None) -> Outage | None:
    """Why a run had no model, by its record of use; None if a call was answered, or if that is the agent's doing."""
    outage = usage and usage.unavailable
    return outage and Outage(plain(outage.cause)[:40], plain(outage.says)[:1000], outage.under_own_load)


def with_outage(outcome: TaskOutcome, record: GroupRecord, work: Path) -> TaskOutcome:
    """The outcome of a run; if it never had the model it was promised, that is its outcome, however its agent ended."""
    outage = _outage_of(read_usage(work))
    if outage is None or record.model is None or outcome.ended not in _MAY_LACK_A_MODEL:
        return outcome
    access = ModelAccess.from_facts(record.model)
    if outage.may_be_provoked and _answers_now(access):
        return outcome
    advice = outage.advice(access)
    detail = f"no call to the model succeeded ({outage.cause}): {outage.says.rstrip('.')}; {advice}"
    return replace(outcome, ended=MODEL_UNAVAILABLE, detail=detail)


def _answers_now(access: ModelAccess) -> bool:
    """Whether the models answer us, so that an agent cannot have a poor run taken for one without a model."""
    from mlebench.gateway.probe import probe

    try:
        return not probe(access)
    except PrerequisiteError:  # the key is not here
        return False


def outcome_words(record: RunRecord) -> str:
    """How a run ended, for tables; with the cause if it had no model."""
    outage = _outage_of(record.model) if record.ended == MODEL_UNAVAILABLE else None
    return f"{record.ended} ({outage.cause})" if outage else record.ended or "unknown"
