"""Which hosts may take runs of a group, and what a scheduler tells a run about the host it is on.

A host that fails twice in a row before an agent has started stops taking runs of the group, so that a broken host does
not use up runs that others could do. Each host has its own file in the group's folder, with a line for each failure
since the last agent that started there; nobody else writes to it. `run --resume` removes these files.
"""

import os
import re
import socket
from contextlib import suppress
from pathlib import Path

from mlebench.core.paths import GroupPaths
from mlebench.run.retry_rules import HOST_FAILURES

NODE_VARIABLE = "MLEBENCH_NODE"  # the scheduler's name for this host: several nodes may share a host name
JOB_LOG_VARIABLE = "MLEBENCH_JOB_LOG"  # where Slurm writes why it ends a job, before it signals it
JOB_VARIABLE = "SLURM_JOB_ID"


def this_host() -> str:
    return os.environ.get(NODE_VARIABLE) or socket.gethostname()


def note_failure(group: GroupPaths, reason: str) -> None:
    """Count a failure of this host before an agent has started."""
    with suppress(OSError):  # a disk that cannot be written to is reported elsewhere
        group.hosts.mkdir(exist_ok=True)
        with group.host(this_host()).open("a", encoding="utf-8") as file:
            file.write(" ".join(reason.split()) + "\n")


def note_start(group: GroupPaths) -> None:
    """An agent has started on this host: failures before it no longer count."""
    with suppress(OSError):
        group.host(this_host()).unlink(missing_ok=True)


def stopped_hosts(group: GroupPaths) -> dict[str, str]:
    """The hosts that take no more runs of a group, each with the last failure."""
    stopped = {}
    with suppress(FileNotFoundError):
        for path in sorted(group.hosts.iterdir()):
            with suppress(FileNotFoundError):  # an agent has just started there
                lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
                if len(lines) >= HOST_FAILURES:
                    stopped[path.name] = lines[-1]
    return stopped


def stop_line(host: str, reason: str) -> str:
    """What a person has to know about a host that has stopped."""
    return (
        f"{host} takes no more runs of this group: {HOST_FAILURES} failures in a row before an agent started: {reason}"
    )


def forget_failures(group: GroupPaths, *, only_here: bool) -> None:
    """Let hosts try again: all of them, or this one."""
    with suppress(FileNotFoundError):
        for path in [group.host(this_host())] if only_here else list(group.hosts.iterdir()):
            path.unlink(missing_ok=True)


def scheduler_reason() -> str | None:
    """Why the scheduler ends the job that this process is, if it gives a reason."""
    job = os.environ.get(JOB_VARIABLE, "")
    try:
        text = Path(os.environ[JOB_LOG_VARIABLE]).read_text(encoding="utf-8", errors="replace")
    except (KeyError, OSError):
        return None
    reasons = re.findall(rf"\*\*\* JOB {re.escape(job)} ON \S+ CANCELLED AT \S+(?: DUE TO ([A-Z ]+))? \*\*\*", text)
    if not reasons or not reasons[-1]:
        return None
    if reasons[-1] == "TIME LIMIT":
        return "Slurm's time limit ended it: raise that limit (--slurm-option time=…), or lower --time-limit"
    return f"Slurm ended it: {reasons[-1].lower()}"
