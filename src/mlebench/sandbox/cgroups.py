"""Control groups, version 1 or 2, if this process may make one; otherwise limits are watched instead.

This needs no helper program and no daemon: a group is a folder, and a limit is a file in it.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PREFIX = "mlebench-"
CPU_PERIOD = 100_000  # microseconds


@dataclass
class Cgroup:
    """A group of processes with limits. `folders` is by controller; in version 2 all are the same folder."""

    folders: dict[str, Path]
    unified: bool
    enforced_by: dict[str, str] = field(default_factory=dict)  # limit: what enforces it

    @classmethod
    def create(cls, name: str, memory: int | None, cpus: float | None, processes: int) -> "Cgroup | None":
        """A new group with these limits; None if none of them can be set."""
        folders, unified = _places(name)
        if not folders:
            return None
        group = cls(folders, unified)
        if unified:
            wanted = {
                "memory": [("memory.max", memory), ("memory.swap.max", 0)],
                "cpu": [("cpu.max", cpus and f"{int(cpus * CPU_PERIOD)} {CPU_PERIOD}")],
                "pids": [("pids.max", processes)],
            }
        else:
            wanted = {
                "memory": [("memory.limit_in_bytes", memory), ("memory.memsw.limit_in_bytes", memory)],
                "cpu": [("cpu.cfs_quota_us", cpus and int(cpus * CPU_PERIOD)), ("cpu.cfs_period_us", CPU_PERIOD)],
                "pids": [("pids.max", processes)],
            }
        for controller, settings in wanted.items():
            group._set(controller, settings)
        if not group.enforced_by:
            group.remove()
            return None
        return group

    def _set(self, controller: str, settings: list[tuple[str, int | float | str | None]]) -> None:
        folder = self.folders.get(controller)
        if folder is None:
            return
        done = []
        for file, value in settings:
            if value is not None and (folder / file).exists():
                with contextlib.suppress(OSError):
                    (folder / file).write_text(str(value), encoding="ascii")
                    done.append(file)
        if settings[0][0] in done:  # the limit itself
            self.enforced_by[controller] = "cgroup v2" if self.unified else "cgroup v1"

    def join(self) -> None:
        """Put the calling process, and what it starts from now on, into the group."""
        for folder in set(self.folders.values()):
            (folder / "cgroup.procs").write_text("0", encoding="ascii")

    def pids(self) -> set[int]:
        members: set[int] = set()
        for folder in set(self.folders.values()):
            with contextlib.suppress(OSError):
                members |= {int(line) for line in (folder / "cgroup.procs").read_text(encoding="ascii").split()}
        return members - {0}

    def kill(self) -> None:
        """End every process of the group, even those that fork as fast as they can."""
        for _ in range(1000):
            with contextlib.suppress(OSError):
                (next(iter(self.folders.values())) / "cgroup.kill").write_text("1", encoding="ascii")
            pids = self.pids() - {os.getpid()}
            if not pids:
                return
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)

    def memory_peak(self) -> int | None:
        return self._number("memory", "memory.peak" if self.unified else "memory.max_usage_in_bytes")

    def oom_kills(self) -> int:
        """How many processes the kernel has killed because memory ran out."""
        folder = self.folders.get("memory")
        if folder is None:
            return 0
        try:
            text = (folder / ("memory.events" if self.unified else "memory.oom_control")).read_text(encoding="ascii")
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")), 0)

    def cpu_seconds(self) -> float | None:
        if self.unified:
            with contextlib.suppress(OSError, KeyError):
                lines = (next(iter(self.folders.values())) / "cpu.stat").read_text(encoding="ascii").splitlines()
                return int(dict(line.split() for line in lines)["usage_usec"]) / 1e6
            return None
        used = self._number("cpuacct", "cpuacct.usage")
        return None if used is None else used / 1e9

    def _number(self, controller: str, file: str) -> int | None:
        try:
            return int((self.folders[controller] / file).read_text(encoding="ascii"))
        except (KeyError, OSError, ValueError):
            return None

    def remove(self) -> None:
        """Remove the group, which must be empty; the kernel may need a moment to see that it is."""
        for folder in set(self.folders.values()):
            for _ in range(50):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    pass
                except OSError:
                    time.sleep(0.01)
                    continue
                break


def remove_leftovers(name: str) -> None:
    """End and remove the groups of that task, and of its helpers, that a killed supervisor left behind."""
    own, unified = _own_folders()
    parents = {*own.values(), *(_upwards(own["memory"]) if unified else ())}
    for folder in {folder for parent in parents for folder in parent.glob(f"{PREFIX}{name}*")}:
        group = Cgroup({"": folder}, unified)
        group.kill()
        group.remove()


def _places(name: str) -> tuple[dict[str, Path], bool]:
    """New folders for a group of that name, by controller."""
    parents, unified = _own_folders()
    if unified:
        candidate = next((candidate for candidate in _upwards(parents["memory"]) if delegates(candidate)), None)
        if candidate is None:
            return {}, True
        parents = dict.fromkeys(parents, candidate)
    folders: dict[str, Path] = {}
    for controller, parent in parents.items():
        folder = parent / f"{PREFIX}{name}"
        with contextlib.suppress(OSError):
            folder.mkdir(exist_ok=True)
            if os.access(folder / "cgroup.procs", os.W_OK):
                folders[controller] = folder
    return folders, unified


def _own_folders() -> tuple[dict[str, Path], bool]:
    """The folders of this process's groups, by controller; True if they are of version 2."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}, False
    ours: dict[str, Path] = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in ("memory", "cpu", "cpuacct", "pids"):
                mounted = next((root for root in (ROOT / controllers, ROOT / controller) if root.is_dir()), None)
                if mounted:
                    inside = mounted / path.lstrip("/")
                    ours[controller] = inside if inside.is_dir() else mounted
    if ours:
        return ours, False
    if not (ROOT / "cgroup.controllers").is_file():
        return {}, False
    path = next((line.split(":", 2)[2] for line in lines if line.startswith("0::")), "/")
    folder = ROOT / path.lstrip("/")
    folder = folder if folder.is_dir() else ROOT
    return dict.fromkeys(("memory", "cpu", "pids"), folder), True


def _upwards(folder: Path) -> list[Path]:
    """Return a version 2 group and those above it: one that holds processes cannot have limited groups below."""
    return [parent for parent in (folder, *folder.parents) if parent.is_relative_to(ROOT)]


def delegates(folder: Path) -> bool:
    """Whether we may make limited groups below a version 2 folder; asks the kernel to allow it."""
    if not os.access(folder, os.W_OK):
        return False
    wanted = {"memory", "cpu", "pids"}
    try:
        if _is_occupied(folder):
            return False
        wanted &= set((folder / "cgroup.controllers").read_text(encoding="ascii").split())
        control = folder / "cgroup.subtree_control"
        lacking = wanted - set(control.read_text(encoding="ascii").split())
        for controller in sorted(lacking):
            with contextlib.suppress(OSError):
                control.write_text(f"+{controller}", encoding="ascii")
        return bool(wanted & set(control.read_text(encoding="ascii").split()))
    except OSError:
        return False


def _is_occupied(folder: Path) -> bool:
    """Whether a version 2 folder has processes of its own, so that no group of processes can be made below it.

    This must be known before asking: there the kernel refuses to limit memory, but not CPUs, and that would turn the
    folder into one for threads. Groups below it would then take no process at all.
    """
    kind = folder / "cgroup.type"  # the root has none, and may have processes
    if not kind.exists():
        return False
    is_plain = kind.read_text(encoding="ascii").strip() == "domain"
    return not is_plain or bool((folder / "cgroup.procs").read_text(encoding="ascii").strip())
