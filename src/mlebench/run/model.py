"""A run's use of a model: its gateway during the run, and what is known about its calls."""

import logging
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlebench import paths
from mlebench.errors import PrerequisiteError
from mlebench.gateway.access import ModelAccess
from mlebench.gateway.door import ModelDoor
from mlebench.gateway.fields import opening
from mlebench.gateway.outage import Outage
from mlebench.outcomes import AGENT_ERROR, FINISHED, MODEL_UNAVAILABLE, TIMEOUT
from mlebench.run.records import Group, GroupRecord, Run, RunRecord
from mlebench.sandbox.base import Task
from mlebench.sandbox.session import Outcome
from mlebench.untrusted import UntrustedFileError, open_untrusted, parse_json, plain

logger = logging.getLogger(__name__)

LARGEST_USE = 1 << 20
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


def open_model(record: GroupRecord, task: Task) -> AbstractContextManager[ModelDoor | None]:
    """The gateway of a run, if it should have one."""
    if record.network != "model":
        return nullcontext()
    if record.model is None:
        raise PrerequisiteError("this run group has a network `model` but names no model: plan it again")
    return ModelDoor(task.name, ModelAccess.from_dict(record.model), task.work, task.limits.seconds)


def unsealed_by(record: GroupRecord) -> list[str]:
    """What weakens the seal of a group's runs, in words; nothing if they are sealed."""
    if record.sandbox == "host":
        return ["the agent sees the answers"]
    opened = record.model or {}
    return [
        *(["the sandbox is a plain process"] if record.sandbox == "process" else []),
        *(["the network is open"] if record.network == "full" else []),
        *(["the container is privileged"] if record.agent.get("privileged") else []),
        *(f"the provider may use {tool}" for tool in opened.get("tools", ())),
        *(f"requests may have the field {name}" for name in opening(opened.get("fields", ()))),
    ]


def model_use(work: Path) -> dict[str, Any] | None:
    """What an attempt has used so far. In a plain process, the agent could change this file."""
    try:
        with open_untrusted(paths.model_use(work), LARGEST_USE) as file:
            use = parse_json(file.read(LARGEST_USE))
    except (UntrustedFileError, ValueError, PrerequisiteError):
        return None
    return use if isinstance(use, dict) else None


def outage_of(use: Any) -> Outage | None:
    """Why a run had no model, by its record of use; None if a call was answered, or if that is the agent's doing."""
    match use:
        case {"unavailable": {"cause": str(cause), "says": str(says)} as outage}:
            return Outage(plain(cause)[:40], plain(says)[:1000], outage.get("under_own_load") is True)
    return None


def with_outage(outcome: Outcome, record: GroupRecord, work: Path) -> Outcome:
    """The outcome of a run; if it never had the model it was promised, that is its outcome, however its agent ended."""
    outage = outage_of(model_use(work))
    if outage is None or record.model is None or outcome.ended not in _MAY_LACK_A_MODEL:
        return outcome
    access = ModelAccess.from_dict(record.model)
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
    outage = outage_of(record.model) if record.ended == MODEL_UNAVAILABLE else None
    return f"{record.ended} ({outage.cause})" if outage else record.ended or "unknown"


def use_so_far(group: Group, run: Run) -> dict[str, Any] | None:
    """A run's use of a model, final or so far."""
    if run.record.is_final or not run.record.attempts:
        return run.record.model
    return model_use(group.paths.work(run.record.attempts[-1]["token"]))
