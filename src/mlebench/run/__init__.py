"""Runs: an agent on a competition, in a sandbox, graded. `run` starts a group of them, `resume` continues one.

```python
from mlebench.run import Request, run

group = run(Request(agent="dummy", competitions=["spaceship-titanic"], twin=True))
```
"""

from typing import TYPE_CHECKING

from mlebench.core.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from mlebench.records.run_groups import Group, Run, unfinished
    from mlebench.run.group_operations import cancel
    from mlebench.run.over_time import grade_snapshots, score_over_time
    from mlebench.run.regrade import grade_group
    from mlebench.run.request import ModelRequest, Request
    from mlebench.run.runner import GroupCancelledError, GroupProgress, RunsInterrupted, resume, run

__all__ = [
    "Group",
    "GroupCancelledError",
    "GroupProgress",
    "ModelRequest",
    "Request",
    "Run",
    "RunsInterrupted",
    "cancel",
    "grade_group",
    "grade_snapshots",
    "resume",
    "run",
    "score_over_time",
    "unfinished",
]

__getattr__, __dir__ = lazy_imports(
    __name__,
    {
        "mlebench.records.run_groups": ("Group", "Run", "unfinished"),
        "mlebench.run.group_operations": ("cancel",),
        "mlebench.run.over_time": ("grade_snapshots", "score_over_time"),
        "mlebench.run.regrade": ("grade_group",),
        "mlebench.run.request": ("ModelRequest", "Request"),
        "mlebench.run.runner": ("GroupCancelledError", "GroupProgress", "RunsInterrupted", "resume", "run"),
    },
)
