"""Where agents run: each backend is one class in one module, and the supervisor enforces limits for all.

What differs between backends is said by the attributes of `Sandbox`: nothing asks for the name of one.
"""

import sys

from mlebench.core.errors import PrerequisiteError
from mlebench.sandbox.base import Sandbox, Task
from mlebench.sandbox.bubblewrap import Bubblewrap
from mlebench.sandbox.docker import Docker
from mlebench.sandbox.plain_process import PlainProcess
from mlebench.sandbox.podman import Podman

BACKENDS: dict[str, type[Sandbox]] = {backend.name: backend for backend in (Docker, Podman, Bubblewrap, PlainProcess)}
AUTOMATIC = (Docker, Bubblewrap)  # the preferred one first
ON_NODES = Bubblewrap  # the most common on nodes of clusters, which may have others than this machine
UNISOLATED = PlainProcess  # used only if it is asked for by name


def require_linux() -> None:
    """PrerequisiteError on a system where no agent can run."""
    if sys.platform != "linux":
        raise PrerequisiteError(
            "running agents needs Linux; preparing, grading, reporting and viewing also work on this system"
        )


def sandbox_named(name: str) -> Sandbox:
    """The backend of that name."""
    if name not in BACKENDS:
        raise PrerequisiteError(f"there is no sandbox {name!r}; there are auto, {', '.join(BACKENDS)}")
    return BACKENDS[name]()


def best_sandbox(*, with_images: bool = True) -> Sandbox:
    """The first that works here and isolates; without images, one that has this machine's programs."""
    faults = []
    for backend in AUTOMATIC:
        sandbox = backend()
        if sandbox.runs_images and not with_images:
            continue
        fault = sandbox.fault()
        if fault is None:
            return sandbox
        faults.append(f"{sandbox.name}: {fault}")
    raise PrerequisiteError(
        f"no sandbox works here. {'; '.join(faults)}. `--sandbox {UNISOLATED.name}` runs agents without isolation"
    )


def helper_sandboxes() -> list[Sandbox]:
    """Backends that can run programs of ours, which are in no image; the preferred one first."""
    return [backend() for backend in BACKENDS.values() if not backend.runs_images]


__all__ = [
    "AUTOMATIC",
    "BACKENDS",
    "ON_NODES",
    "UNISOLATED",
    "Sandbox",
    "Task",
    "best_sandbox",
    "helper_sandboxes",
    "require_linux",
    "sandbox_named",
]
