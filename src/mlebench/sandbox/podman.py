"""Podman: like docker, but without a daemon, and also for ordinary users if control groups are delegated."""

import os
import resource
import shlex
import shutil
from dataclasses import replace
from functools import cache
from typing import Any

from mlebench.sandbox.base import Launch, Task
from mlebench.sandbox.docker import Docker, answer, ask, reason_in, through_relay
from mlebench.sandbox.relay import NO_USER_NAMESPACES

MOST = 1 << 15  # open files, and processes per user; a task's processes are limited elsewhere


class Podman(Docker):
    name = "podman"
    takes_runtimes = False
    nothing = "type=tmpfs,notmpcopyup"  # by default, it copies what should be hidden into the mask

    def launch(self, task: Task) -> Launch:
        """Ask for lack of memory by the file `oom` that podman's monitor leaves in the folder it was started in."""
        launch = super().launch(task)
        say = f"[ -e {shlex.quote(str(task.work / 'oom'))} ] && echo true"
        return replace(launch, argv=("env", f"--chdir={task.work}", *launch.argv), oom_query=("sh", "-c", say))

    def program(self, task: Task) -> list[str]:
        """Have the relay forbid user namespaces, in which agents would have every capability; podman allows them."""
        return through_relay(task, *([] if task.privileged else [NO_USER_NAMESPACES]))

    def engine_fault(self) -> str | None:
        return _fault()

    def missing_image(self, image: str, build: str) -> str:  # noqa: ARG002 only docker builds images
        return f"podman has no image {image}: load it with `podman load`, or name one with --image"

    def version(self) -> str:
        return str(_facts().get("version", {}).get("Version", ""))

    def conditions(self, task: Task) -> dict[str, Any]:
        return {**super().conditions(task), "rootless": os.geteuid() != 0}

    def more(self) -> list[str]:
        # By default, a read-only container has unlimited folders in memory, and asks for limits higher than allowed.
        arguments = ["--read-only-tmpfs=false"]
        for name, kind in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
            hard = resource.getrlimit(kind)[1]
            number = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard)
            arguments += ["--ulimit", f"{name}={number}:{number}"]
        # What an ordinary user's agent writes belongs to that user.
        return arguments if os.geteuid() == 0 else [*arguments, "--userns", "keep-id"]

    def network(self, task: Task) -> list[str]:
        if task.network == "full" and os.geteuid() != 0:
            return []  # this version's default for ordinary users
        return super().network(task)

    def gpus(self, task: Task) -> list[str]:
        return [word for gpu in task.gpus for word in ("--device", f"nvidia.com/gpu={gpu}")]


@cache
def _facts() -> dict[str, Any]:
    return answer("podman", "info", "--format", "json") or {}


@cache
def _fault() -> str | None:
    if shutil.which("podman") is None:
        return "there is no `podman`: install it"
    host = _facts().get("host")
    if host is None:
        return f"podman does not work here: {reason_in(ask('podman', 'info'))}"
    lacking = {"cpu", "memory", "pids"} - set(host.get("cgroupControllers") or [])
    if host["security"]["rootless"] and (host["cgroupVersion"] != "v2" or lacking):
        return (
            "for an ordinary user, podman enforces limits only where control groups of version 2 are delegated, and "
            "they are not: use --sandbox bubblewrap"
        )
    return None
