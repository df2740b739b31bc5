"""A run's use of a model: its gateway during the run, and what is known about its calls."""

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from mlebench import paths
from mlebench.errors import PrerequisiteError
from mlebench.gateway.access import ModelAccess
from mlebench.gateway.door import ModelDoor
from mlebench.run.records import Group, GroupRecord, Run
from mlebench.sandbox.base import Task
from mlebench.untrusted import UntrustedFileError, open_untrusted

LARGEST_USE = 1 << 20


def open_model(record: GroupRecord, task: Task) -> AbstractContextManager[ModelDoor | None]:
    """The gateway of a run, if it should have one."""
    if record.network != "model":
        return nullcontext()
    if record.model is None:
        raise PrerequisiteError("this run group has a network `model` but names no model: plan it again")
    return ModelDoor(task.name, ModelAccess.from_dict(record.model), task.work, task.limits.seconds)


def tools_allowed(record: GroupRecord) -> list[str]:
    """Provider-side tools that were asked for by name."""
    return list((record.model or {}).get("tools", []))


def model_use(work: Path) -> dict[str, Any] | None:
    """What an attempt has used so far. In a plain process, the agent could change this file."""
    try:
        with open_untrusted(paths.model_use(work), LARGEST_USE) as file:
            use = json.load(file)
    except (UntrustedFileError, ValueError, RecursionError, PrerequisiteError):
        return None
    return use if isinstance(use, dict) else None


def use_so_far(group: Group, run: Run) -> dict[str, Any] | None:
    """A run's use of a model, final or so far."""
    if run.record.is_final or not run.record.attempts:
        return run.record.model
    return model_use(group.paths.work(run.record.attempts[-1]["token"]))
