"""Which process wrote a record, and is it still alive? Process ids are reused, so its start counts too."""

import ctypes
import os
import signal
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # of Linux's prctl
_PARENT_CHECK = 0.5  # seconds between two looks for the parent, where the kernel does not watch it for us


@dataclass(frozen=True)
class Process:
    """Identifies a process well enough to tell, on the same host, whether it is still alive."""

    host: str
    pid: int
    started: int

    @classmethod
    def current(cls) -> "Process":
        return cls(host_identity(), os.getpid(), process_start(os.getpid()) or 0)

    @property
    def is_here(self) -> bool:
        return self.host == host_identity()

    @property
    def is_alive(self) -> bool:
        """Whether it is alive; only valid for a process on this host."""
        return process_start(self.pid) == self.started


def host_identity() -> str:
    """This host since its last boot, as this container sees it: process ids mean the same wherever this is equal."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        boot, space = "", ""
    return f"{socket.gethostname()}/{boot}/{space}"


def process_start(pid: int) -> int | None:
    """When a process was started, in the kernel's ticks; None if there is none, or only a zombie."""
    try:
        state, *fields = _status_fields(pid)
    except FileNotFoundError:
        return 0 if not Path("/proc/self/stat").exists() and _is_alive(pid) else None
    except OSError:
        return None
    return None if state == "Z" else int(fields[18])


def is_stopped(pid: int) -> bool:
    """Whether somebody has stopped a process, by a signal or as its tracer."""
    try:
        return _status_fields(pid)[0] in "Tt"
    except OSError:
        return False


def end_with_parent(parent: int) -> None:
    """In a fork: have the kernel kill it when its parent ends, however that happens; elsewhere, a thread of it does so.

    The parent must have forked in its only thread: the kernel means the end of the thread that forked. A change of the
    user undoes it.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    else:
        threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # it has ended already
        os._exit(1)


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK)
    os._exit(1)


def cpu_count() -> int:
    """CPUs that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _status_fields(pid: int) -> list[str]:
    """What the kernel says about a process, beginning with its state."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    return text.rpartition(")")[2].split()  # before that is a name in brackets, which may contain blanks and brackets


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
