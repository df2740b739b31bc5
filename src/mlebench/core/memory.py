"""How much memory there is, and how much of it a process uses. What the system does not tell is 0 or unlimited."""

import math
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from threading import Event, Thread
from typing import TypeVar

Result = TypeVar("Result")

LOOK = 0.05  # seconds between two looks at a process's memory

_CGROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")


def total_memory() -> int:
    """Bytes of memory, of the machine or of the control group we are in."""
    return int(min(_physical(), group_memory()))


def group_memory() -> float:
    """Bytes of memory that our control group may use; infinite if it has no limit."""
    return min(_group_limits(), default=math.inf)


def _physical() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _group_limits() -> Iterator[int]:
    """The limits of our control group and of those around it, in either version of control groups."""
    for file in _limit_files():
        with suppress(OSError, ValueError):  # there is no such file, or no limit
            yield int(file.read_text(encoding="ascii"))


def _limit_files() -> Iterator[Path]:
    yield from (_CGROUPS / "memory.max", _CGROUPS / "memory" / "memory.limit_in_bytes")
    with suppress(OSError):
        for line in (_PROC / "self" / "cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, name = line.split(":", 2)
            for group in (relative := PurePosixPath(name.strip("/")), *relative.parents):
                if not controllers:
                    yield _CGROUPS / group / "memory.max"
                elif "memory" in controllers.split(","):
                    yield _CGROUPS / "memory" / group / "memory.limit_in_bytes"


def used_memory(pid: int) -> int:
    """Bytes of memory that a process uses now, swapped out or not; 0 if unknown."""
    return _status(str(pid), "VmRSS") + _status(str(pid), "VmSwap")


def peak_during(work: Callable[[], Result]) -> tuple[Result, int]:
    """The result of a call, and the most bytes of memory that this process used meanwhile.

    The kernel's own peak is exact, but never falls: where it has not risen, what a thread saw counts. It is not reset,
    since whoever started this process may want to know it.
    """
    before, seen, ended = _peak(), [used_memory(os.getpid())], Event()

    def look() -> None:
        while not ended.wait(LOOK):
            seen.append(used_memory(os.getpid()))

    thread = Thread(target=look, daemon=True)
    thread.start()
    try:
        result = work()
        seen.append(used_memory(os.getpid()))
    finally:
        ended.set()
        thread.join()
    after = _peak()
    return result, after if after > before else max(seen) or after


def _peak() -> int:
    return bytes_of_peak(resource.getrusage(resource.RUSAGE_SELF))


def bytes_of_peak(usage: resource.struct_rusage) -> int:
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def attainable_memory() -> int:
    """The most bytes that the system would let this process use: if it has less, a MemoryError means a larger wish.

    Address space that is reserved and never used, as libraries and threads do it, counts against the system's limits
    but is no use of memory.
    """
    rooms = [_room_below(resource.RLIMIT_AS, "VmSize"), _room_below(resource.RLIMIT_DATA, "VmData")]
    with suppress(OSError):
        if (_PROC / "sys/vm/overcommit_memory").read_text(encoding="ascii").strip() == "2":
            rooms.append(_meminfo("CommitLimit") - _meminfo("Committed_AS"))
    used = used_memory(os.getpid())
    limits = [_physical() + _meminfo("SwapTotal"), *_group_limits()]
    return min([*limits, *(used + room for room in rooms if room is not None)])


def _room_below(limit: int, counted: str) -> int | None:
    """Bytes that are left of a limit of this process; None if there is no limit."""
    soft, _ = resource.getrlimit(limit)
    return None if soft == resource.RLIM_INFINITY else soft - _status("self", counted)


def _meminfo(name: str) -> int:
    return _field(_PROC / "meminfo", name)


def _status(process: str, name: str) -> int:
    return _field(_PROC / process / "status", name)


def _field(file: Path, name: str) -> int:
    """A line such as `VmRSS:  123 kB`, in bytes; 0 if it is not there."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    lines = (line.split() for line in text.splitlines() if line.startswith(f"{name}:"))
    return next((int(words[1]) * 1024 for words in lines), 0)
