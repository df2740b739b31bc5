"""What the nodes of a cluster have. A small job on each writes what it finds to the shared disk."""

import json
import os
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlebench import __version__
from mlebench.agents import npm, venvs
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import write_whole
from mlebench.records.group import ExecutorConfig
from mlebench.run.executors import SchedulerError
from mlebench.run.hardware import gpus
from mlebench.sandbox import BACKENDS
from mlebench.sandbox.cgroups import Cgroup

MOST = 8  # nodes to ask
PATIENCE = 90.0  # seconds; a busy node may not answer

Facts = dict[str, Any]


def look(target: Path) -> None:
    """Write what this node has to a file on the shared disk."""
    facts: Facts = {
        "host": socket.gethostname(),
        "mlebench": __version__,
        "sandboxes": {name: backend().fault() for name, backend in BACKENDS.items() if backend.is_isolated},
        "limits": _limits(),
        "gpus": [f"{gpu.index}: {gpu.name}" for gpu in gpus()],
        "venvs": [venv.name for venv, _ in venvs.installed() if not venvs.installed_fault(venv)]
        + [f"npm/{folder.name}" for folder in npm.installed()],
        "disk": _disk_faults(target.parent),
        "ahead": _ahead_of_disk(target.parent),
    }
    write_whole(target, json.dumps(facts))


def _limits() -> list[str]:
    """Which limits a control group of this user could enforce."""
    group = Cgroup.create(f"look-{os.getpid()}", 1 << 30, 1, 64)
    if group is None:
        return []
    group.remove()
    return sorted(group.enforced_by)


def _disk_faults(folder: Path) -> list[str]:
    """How the disk fails to behave as results and leases need."""
    scratch = folder / f"{paths.SCRATCH}{secrets.token_hex(8)}"
    scratch.mkdir()
    try:
        first, second = scratch / "one", scratch / "two"
        for trial in (first, second):
            trial.mkdir()
            (trial / "file").touch()
        checks: dict[str, Callable[[], object]] = {
            "lets a folder replace one that holds files": lambda: first.rename(second),
            "lets a link replace a file": lambda: os.link(first / "file", second / "file"),
            "creates a file that already exists": lambda: (first / "file").touch(exist_ok=False),
        }
        return [text for text, act in checks.items() if not _refuses(act)]
    finally:
        shutil.rmtree(scratch)


def _refuses(act: Callable[[], object]) -> bool:
    try:
        act()
    except OSError:
        return True
    return False


def _ahead_of_disk(folder: Path) -> float:
    """How many seconds the clock here is ahead of the disk's, which all nodes see."""
    probe = folder / f"{paths.SCRATCH}{secrets.token_hex(8)}"
    probe.write_text("now", encoding="ascii")
    try:
        return time.time() - probe.stat().st_mtime
    finally:
        probe.unlink()


def ask_nodes(executor_config: ExecutorConfig, shared: Path) -> dict[str, Facts | None]:
    """What each node says about itself; None if it does not answer in time."""
    with _scratch(shared) as folder:
        own = _ahead_of_disk(folder)
        answers = (
            _through_slurm(executor_config, folder)
            if executor_config.name == "slurm"
            else _through_ray(executor_config, folder)
        )
        for facts in filter(None, answers.values()):
            facts["ahead"] = round(facts["ahead"] - own, 1)  # of this host
        return answers


@contextmanager
def _scratch(shared: Path) -> Iterator[Path]:
    folder = shared / f"{paths.SCRATCH}doctor-{secrets.token_hex(4)}"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _command(target: Path) -> list[str]:
    return [sys.executable, "-P", "-m", "mlebench", "doctor", "--look", str(target)]


def _through_slurm(executor_config: ExecutorConfig, folder: Path) -> dict[str, Facts | None]:
    from mlebench.run.slurm import nodes, submit_to

    names = nodes(executor_config.options)[:MOST]
    for name in names:
        submit_to(name, folder.name, _command(folder / name), executor_config.options, folder / f"{name}.log")
    return _gather(folder, names)


def _through_ray(executor_config: ExecutorConfig, folder: Path) -> dict[str, Facts | None]:
    from mlebench.run.ray_cluster import submit_to_nodes

    return _gather(folder, submit_to_nodes(_command, folder, executor_config.options.get("address"), MOST))


def _gather(folder: Path, names: list[str]) -> dict[str, Facts | None]:
    if not names:
        raise SchedulerError("no node can be used: `sinfo`, or `ray status`, shows why")
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and not all((folder / name).is_file() for name in names):
        time.sleep(0.5)
    return {name: _read(folder / name) for name in names}


def _read(path: Path) -> Facts | None:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise PrerequisiteError(f"{path} is not JSON: the disk does not show what a node has written") from error
