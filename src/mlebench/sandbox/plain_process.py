"""A plain process: no isolation at all. For development, and for systems that have nothing better."""

import contextlib
import os
import signal
import time
from pathlib import Path

from mlebench.sandbox import cgroups, resource_usage
from mlebench.sandbox.base import HOME, RELAY, Bind, Launch, Sandbox, Task, interpreter


class PlainProcess(Sandbox):
    name = "process"
    noun = "a plain process"
    is_isolated = False

    def fault(self, task: Task | None = None) -> str | None:
        if task and task.privileged:
            return "a plain process has no privileged mode; use --sandbox docker"
        return None

    def home(self, work: Path) -> str:
        return str(work / "home")

    def path_of(self, bind: Bind) -> str:
        return str(bind.source)

    def launch(self, task: Task) -> Launch:
        """Start the program with links in its own folder instead of binds below /home.

        The environment says where it is.
        """
        for bind in task.binds:
            if bind.target != str(bind.source) and Path(bind.target).is_relative_to(HOME):
                (task.home / Path(bind.target).relative_to(HOME)).symlink_to(bind.source)
        ports = [f"{port}={task.proxies[proxy]}" for port, proxy in task.ports.items()]
        relay = [interpreter(), "-I", "-S", str(RELAY), *ports, "--"] if ports else []
        inherited_names = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")
        inherited = {name: os.environ[name] for name in inherited_names if name in os.environ}
        # Nothing stops the task from using other GPUs, but CUDA will not by itself.
        gpus = {"CUDA_VISIBLE_DEVICES": ",".join(task.gpus), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        own = {"HOME": str(task.home), "TMPDIR": str(task.work / "tmp"), resource_usage.TASK_VARIABLE: task.name}
        return Launch(
            argv=(*relay, *task.command),
            env={**inherited, **task.env, **gpus, **own},
            writable=(str(task.work),),
        )

    def remove_leftovers(self, name: str) -> None:
        cgroups.remove_leftovers(name)
        while pids := resource_usage.marked(name):  # if no control group holds them together
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)
