"""The CPUs of a sandbox: which it gets, and what it sees of them in /sys. Used by the supervisor: standard library
only.

Holding a CPU means having a unix socket open that is bound to an abstract name made from its number, as with GPUs: the
kernel frees the name when the supervisor ends, however it ends.
"""

import errno
import math
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

HOST = Path("/sys/devices/system/cpu")
CPU_PERIOD = 100_000  # microseconds
SIBLINGS = ("thread_siblings", "core_cpus", "core_siblings", "package_cpus")  # old and new names


@dataclass
class CpuChoice:
    """The CPUs that a sandbox may use. No other sandbox on this machine gets those that are held here."""

    numbers: list[int]
    holders: list[socket.socket] = field(default_factory=list)

    @classmethod
    def choose(cls, share: float | None, *, enforced: bool, exclusive: bool) -> "CpuChoice":
        """Choose CPUs for a share of them.

        `enforced`: something else limits the time on all CPUs, so a part of one more does no harm.

        With more sandboxes than CPUs, some share theirs.
        """
        usable = sorted(os.sched_getaffinity(0))
        count = len(usable) if share is None else max(1, math.ceil(share) if enforced else int(share))
        if count >= len(usable) or (enforced and not exclusive):
            return cls(usable)
        chosen = cls([])
        for number in usable if exclusive else ():
            if len(chosen.numbers) < count and (holder := _hold(number)):
                chosen.numbers.append(number)
                chosen.holders.append(holder)
        start = os.getpid() % len(usable)
        unused = [number for number in (*usable[start:], *usable[:start]) if number not in chosen.numbers]
        chosen.numbers = sorted([*chosen.numbers, *unused[: count - len(chosen.numbers)]])
        return chosen


def _hold(number: int) -> socket.socket | None:
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        holder.bind(f"\0mlebench-cpu-{number}")
    except OSError as error:
        holder.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return holder


class CpuLocation(NamedTuple):
    """Where a CPU is; where the system does not say, each is a core of its own."""

    package: int
    core: int
    node: int

    @classmethod
    def of(cls, number: int) -> "CpuLocation":
        own = HOST / f"cpu{number}"
        package, core = _read(own / "topology/physical_package_id", 0), _read(own / "topology/core_id", number)
        return cls(package, core, next((int(path.name[4:]) for path in own.glob("node[0-9]*")), 0))


def write_sys(folder: Path, numbers: list[int], share: float | None, memory: int | None) -> None:
    """What libraries read in /sys: the topology of these CPUs, and the limits as a control group would show them."""
    locations = {number: CpuLocation.of(number) for number in numbers}
    files = {f"devices/system/cpu/{name}": as_list(numbers) for name in ("online", "possible", "present")}
    for number, (package, core, _) in locations.items():
        threads = [sibling for sibling in numbers if locations[sibling][:2] == (package, core)]
        cores = [sibling for sibling in numbers if locations[sibling].package == package]
        topology = {"physical_package_id": str(package), "core_id": str(core)}
        for name, siblings in dict(zip(SIBLINGS, (threads, threads, cores, cores), strict=True)).items():
            topology |= {name: as_mask(siblings), f"{name}_list": as_list(siblings)}
        files |= {f"devices/system/cpu/cpu{number}/topology/{name}": text for name, text in topology.items()}
    nodes = sorted({location.node for location in locations.values()})
    files |= {f"devices/system/node/{name}": as_list(nodes) for name in ("online", "possible", "has_cpu")}
    for node in nodes:
        own = [number for number in numbers if locations[number].node == node]
        files[f"devices/system/node/node{node}/cpulist"] = as_list(own)
        files[f"devices/system/node/node{node}/cpumap"] = as_mask(own)
    files["fs/cgroup/cpu.max"] = f"{'max' if share is None else int(share * CPU_PERIOD)} {CPU_PERIOD}"
    files["fs/cgroup/memory.max"] = "max" if memory is None else str(memory)
    folder.chmod(0o755)
    before = os.umask(0o022)  # another user reads it
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n", encoding="ascii")
    finally:
        os.umask(before)


def _read(path: Path, otherwise: int) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return otherwise


def as_list(numbers: Iterable[int]) -> str:
    """Return a set of numbers as the kernel writes it: `0-3,8`."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)


def as_mask(numbers: Iterable[int]) -> str:
    """Return a set of numbers as bits: words of eight hexadecimal digits, the highest first."""
    bits = sum(1 << number for number in set(numbers))
    words = [f"{bits >> shift & 0xFFFFFFFF:08x}" for shift in range(0, max(1, bits.bit_length()), 32)]
    return ",".join(reversed(words))
