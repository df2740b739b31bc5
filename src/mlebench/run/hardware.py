"""What this machine has, and how much each worker gets: the published setup, or its share if that is less."""

import platform
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

from mlebench.core.memory import total_memory
from mlebench.core.os_errors import DiskSpace, free_space
from mlebench.core.processes import cpu_count
from mlebench.records.group import Gpu, Limits, Machine, RequestedLimits

# The benchmark's published setup: 24 hours, 36 CPUs, 440 GB and one GPU for every run.
HOURS, CPUS, MEMORY = 24, 36, 440 * 10**9
RESERVE = 0.05  # of memory and disk, for the system and the runner
INODES = 2_000_000


def limits_for(requested: RequestedLimits, workers: int, runs_dir: Path, *, elsewhere: bool = False) -> Limits:
    """The limits of each run; for runs `elsewhere`, this machine's memory and CPUs do not matter."""
    memory = MEMORY if elsewhere else min(MEMORY, share_of_memory(workers))
    cpus = CPUS if elsewhere else min(CPUS, max(1.0, cpu_count() / workers))
    disk, files = (int(free * (1 - RESERVE) / workers) for free in _free_disk(runs_dir))
    limits = Limits(HOURS * 3600.0, memory=memory, cpus=cpus, disk=disk, inodes=min(INODES, files))
    return replace(limits, **requested.limits())


def share_of_memory(workers: int) -> int:
    return int(total_memory() * (1 - RESERVE) / workers)


def _free_disk(folder: Path) -> DiskSpace:
    return free_space(next(path for path in (folder, *folder.absolute().parents) if path.exists()))


def nvidia_smi(*options: str) -> tuple[list[str], str | None]:
    """The lines that nvidia-smi prints, and what is wrong with it; nothing where there is none."""
    if shutil.which("nvidia-smi") is None:
        return [], None
    try:
        done = subprocess.run(  # noqa: S603
            ["nvidia-smi", *options],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"it does not answer ({error})"
    said = (done.stdout + done.stderr).strip().splitlines() or ["it says nothing"]
    return done.stdout.splitlines(), said[-1] if done.returncode else None


@cache
def gpus() -> tuple[Gpu, ...]:
    """This machine's GPUs: index, name and memory in MB."""
    lines, fault = nvidia_smi("--query-gpu=index,name,memory.total", "--format=csv,noheader,nounits")
    listed = []
    for line in () if fault else lines:
        index, _, name_and_memory = line.partition(",")
        name, _, memory = (word.strip() for word in name_and_memory.rpartition(","))
        if index.strip().isdigit() and name:  # it also prints faults, of a GPU that has been lost for example
            listed.append(Gpu(index=index.strip(), name=name, memory_mb=int(memory) if memory.isdigit() else None))
    return tuple(listed)


def describe() -> Machine:
    """The machine, for the record."""
    return Machine(
        host=platform.node(),
        system=platform.platform(),
        cpu=_cpu_model(),
        cpus=cpu_count(),
        memory=total_memory(),
        gpus=list(gpus()),
        python=platform.python_version(),
    )


@cache
def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
