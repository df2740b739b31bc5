"""Where agents run: one module per backend behind one small protocol, and the keeper that enforces limits for all."""

from mlebench.core.errors import PrerequisiteError
from mlebench.sandbox.base import Sandbox, Task

NAMES = ("docker", "podman", "bubblewrap", "process")


def sandbox_named(name: str) -> Sandbox:
    """The backend of that name."""
    if name == "docker":
        from mlebench.sandbox.docker import Docker

        return Docker()
    if name == "podman":
        from mlebench.sandbox.podman import Podman

        return Podman()
    if name == "bubblewrap":
        from mlebench.sandbox.bubblewrap import Bubblewrap

        return Bubblewrap()
    if name == "process":
        from mlebench.sandbox.process import Process

        return Process()
    raise PrerequisiteError(f"there is no sandbox {name!r}; there are auto, {', '.join(NAMES)}")


def best_sandbox() -> Sandbox:
    """The first that works here and isolates; a plain process is used only if asked for by name."""
    faults = []
    for name in ("docker", "bubblewrap"):
        sandbox = sandbox_named(name)
        fault = sandbox.fault()
        if fault is None:
            return sandbox
        faults.append(f"{name}: {fault}")
    raise PrerequisiteError(
        "no sandbox works here. " + "; ".join(faults) + ". `--sandbox process` runs agents without isolation"
    )


__all__ = ["NAMES", "Sandbox", "Task", "best_sandbox", "sandbox_named"]
