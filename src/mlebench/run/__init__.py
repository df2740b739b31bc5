"""Runs: an agent on a competition, in a sandbox, graded. `run` starts a group of them, `resume` continues one.

    from mlebench.run import Request, run

    group = run(Request(agent="dummy", competitions=["spaceship-titanic"], twin=True))

The names below are loaded when they are first used: what executes a single run needs few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlebench.records.run_groups import Group, Run, unfinished
    from mlebench.run.group import cancel
    from mlebench.run.over_time import score_over_time
    from mlebench.run.request import ModelRequest, Request
    from mlebench.run.runner import GroupCancelledError, Progress, RunsInterrupted, resume, run

_MODULES = {
    "mlebench.records.run_groups": ("Group", "Run", "unfinished"),
    "mlebench.run.group": ("cancel",),
    "mlebench.run.over_time": ("score_over_time",),
    "mlebench.run.request": ("ModelRequest", "Request"),
    "mlebench.run.runner": ("GroupCancelledError", "Progress", "RunsInterrupted", "resume", "run"),
}

__all__ = [
    "Group",
    "GroupCancelledError",
    "ModelRequest",
    "Progress",
    "Request",
    "Run",
    "RunsInterrupted",
    "cancel",
    "resume",
    "run",
    "score_over_time",
    "unfinished",
]


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
