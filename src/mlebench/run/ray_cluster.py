"""Ray: an actor for each run, which holds its CPUs, GPUs and memory and starts `run exec` on a leash.

The actors are detached and named after the group and the run, so they outlive this program and can be found by name.
Ray never restarts them: attempts are counted in the runs' folders.
"""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from mlebench.errors import PrerequisiteError
from mlebench.paths import RunPaths
from mlebench.run.execute import PARENT_VARIABLE
from mlebench.run.executors import Resources, SchedulerError, job_name
from mlebench.run.records import Group

NAMESPACE = "mlebench"
PATIENCE = 10.0  # seconds for an actor to answer
ADDRESS_VARIABLE = "RAY_ADDRESS"


class Ray:
    """The actors of one group."""

    name = "ray"

    def __init__(self, group: Group, workers: int, address: str | None):
        self.at_once: int | None = workers
        self._group = group
        self._prefix = f"{job_name(group)}/"
        self._ray = connect(address)

    def submit(self, folders: Sequence[Path]) -> None:
        need = Resources.of(self._group)
        actor = self._ray.remote(Runner)
        for folder in folders:
            try:
                actor.options(
                    name=f"{self._prefix}{folder.name}",
                    lifetime="detached",
                    max_restarts=0,
                    num_cpus=need.cpus,
                    num_gpus=need.gpus,
                    memory=need.memory,
                ).remote(str(folder))
            except ValueError:  # another process has just submitted it
                continue

    def active(self) -> dict[Path, float]:
        return {self._group.paths.root / name.removeprefix(self._prefix): 0.0 for name in self._names()}

    def cancel(self, folders: Collection[Path] | None = None) -> int:
        actors = []
        for name in self._names():
            if folders is None or self._group.paths.root / name.removeprefix(self._prefix) in folders:
                with suppress(ValueError):  # it has just ended
                    actors.append(self._ray.get_actor(name))
        told = {actor.stop.remote(): actor for actor in actors}
        _, silent = self._ray.wait([*told], num_returns=len(told), timeout=PATIENCE) if told else ([], [])
        for answer in silent:  # it has not begun
            self._ray.kill(told[answer])
        return len(actors)

    def _names(self) -> list[str]:
        try:
            return [name for name in self._ray.util.list_named_actors() if name.startswith(self._prefix)]
        except Exception as error:  # Ray has many exceptions for the same problem
            raise SchedulerError(f"Ray does not answer: {error}") from error


class Runner:
    """Does one run, on a node, in an actor. When the actor is killed, the run ends: by its leash, or killed by Ray."""

    def __init__(self, folder: str):
        import ray  # pyright: ignore[reportMissingImports] it is an extra

        gpus = ",".join(str(number) for number in ray.get_gpu_ids())
        command = [sys.executable, "-P", "-m", "mlebench", "run", "exec", folder, "--gpus", gpus]
        leash, _our_end = os.pipe()  # the other end is open as long as this process lives
        with RunPaths(Path(folder)).runner_log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, PARENT_VARIABLE: str(leash)},
                pass_fds=[leash],
                start_new_session=True,
            )
        end = partial(ray.kill, ray.get_runtime_context().current_actor)
        threading.Thread(target=self._await_end, args=(end,), daemon=True).start()

    def _await_end(self, end: Callable[[], None]) -> None:
        self._process.wait()
        end()  # an idle actor would keep its GPUs

    def stop(self) -> None:
        """End cleanly."""
        self._process.terminate()


def connect(address: str | None) -> Any:
    """Ray, connected to a running cluster, or to one on this machine that lives as long as this program."""
    try:
        import ray  # pyright: ignore[reportMissingImports] it is an extra
    except ImportError:
        raise PrerequisiteError("--executor ray needs Ray: `pip install 'mlebench[ray]'`, here and on nodes") from None
    if not ray.is_initialized():
        address = address or os.environ.get(ADDRESS_VARIABLE) or "local"
        settings: dict[str, Any] = {"namespace": NAMESPACE, "logging_level": logging.ERROR, "log_to_driver": False}
        if address == "local":
            settings["include_dashboard"] = False
        try:
            ray.init(address, **settings)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise PrerequisiteError(f"there is no Ray at {address}: {error}") from None
    return ray


def submit_to_nodes(command: Callable[[Path], list[str]], folder: Path, address: str | None, most: int) -> list[str]:
    """Start a small task on each node, which writes to a file named after it; return the nodes' names."""
    ray = connect(address)
    names = {node["NodeID"]: node["NodeManagerHostname"] for node in ray.nodes() if node["Alive"]}
    found = {f"{host}-{id[:6]}": id for id, host in list(names.items())[:most]}
    place = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    for name, id in found.items():
        task = ray.remote(subprocess.run).options(num_cpus=0, scheduling_strategy=place(id, soft=False))
        task.remote(command(folder / name))
    return list(found)
