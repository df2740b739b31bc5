"""Ray: an actor for each run, which holds its CPUs, GPUs and memory and starts `run exec` with a pipe that closes with
it.

The actors are detached and named after the group and the run, so they outlive this program and can be found by name.
Ray never restarts them: attempts are counted in the runs' folders.
"""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from mlebench.core.errors import PrerequisiteError
from mlebench.core.paths import RunPaths
from mlebench.records.run_groups import Group, limits_of
from mlebench.run.executors import Resources, SchedulerError, SchedulerJob, job_name
from mlebench.run.hosts import NODE_VARIABLE
from mlebench.run.signals import PARENT_VARIABLE

NAMESPACE = "mlebench"
PATIENCE = 10.0  # seconds for an actor to answer
ADDRESS_VARIABLE = "RAY_ADDRESS"


class Ray:
    """The actors of one group."""

    name = "ray"

    def __init__(self, group: Group, workers: int, address: str | None):
        self._group = group
        self._workers = workers
        self._need = Resources.of(limits_of(group), group.record.gpus_per_run or 0)
        self._prefix = f"{job_name(group)}/"
        self._ray = connect(address)

    def submit(self, folders: Sequence[Path], avoid: Collection[str] = ()) -> Sequence[Path]:
        actor = self._ray.remote(RunActor)
        sent = folders[: max(0, self._workers - len(self._names()))]
        for folder in sent:
            try:
                actor.options(
                    name=f"{self._prefix}{folder.name}",
                    lifetime="detached",
                    max_restarts=0,
                    num_cpus=self._need.cpus,
                    num_gpus=self._need.gpus,
                    memory=self._need.memory,
                    **self._elsewhere(avoid),
                ).remote(str(folder))
            except ValueError:  # another process has just submitted it
                continue
        return sent

    def _elsewhere(self, avoid: Collection[str]) -> dict[str, Any]:
        """Options that keep an actor away from these nodes, by the label that names a node."""
        nodes = [node for node in _alive(self._ray) if _name(node) in avoid]
        labels = {label: None for node in nodes for label, value in node["Labels"].items() if value == node["NodeID"]}
        if not labels:
            return {}
        strategies = self._ray.util.scheduling_strategies
        other_nodes = strategies.NotIn(*(node["NodeID"] for node in nodes))
        return {"scheduling_strategy": strategies.NodeLabelSchedulingStrategy(hard=dict.fromkeys(labels, other_nodes))}

    def jobs(self) -> dict[Path, SchedulerJob]:
        reason = self.warning()
        return {
            self._group.paths.root / name.removeprefix(self._prefix): SchedulerJob(0.0, reason)
            for name in self._names()
        }

    def nodes(self) -> set[str]:
        return set(map(_name, _alive(self._ray)))

    def warning(self) -> str | None:
        """Ray lets a run that fits on no node wait until there is such a node, which an autoscaler may start."""
        return too_large(self._ray, self._need)

    def cancel(self, folders: Collection[Path] | None = None) -> int:
        actors = []
        for name in self._names():
            if folders is None or self._group.paths.root / name.removeprefix(self._prefix) in folders:
                with suppress(ValueError):  # it has just ended
                    actors.append(self._ray.get_actor(name))
        stopping = {actor.stop.remote(): actor for actor in actors}
        _, silent = self._ray.wait([*stopping], num_returns=len(stopping), timeout=PATIENCE) if stopping else ([], [])
        for answer in silent:  # it has not begun
            self._ray.kill(stopping[answer])
        return len(actors)

    def _names(self) -> list[str]:
        try:
            return [name for name in self._ray.util.list_named_actors() if name.startswith(self._prefix)]
        except Exception as error:  # Ray has many exceptions for the same problem
            raise SchedulerError(f"Ray does not answer: {error}") from error


class RunActor:
    """Does one run, on a node, in an actor. When the actor is killed, the run ends: by its parent pipe, or killed by
    Ray."""

    def __init__(self, folder: str):
        import ray  # pyright: ignore[reportMissingImports] it is an extra

        context = ray.get_runtime_context()
        name = next(_name(node) for node in _alive(ray) if node["NodeID"] == context.get_node_id())
        gpus = ",".join(str(number) for number in ray.get_gpu_ids())
        command = [sys.executable, "-P", "-m", "mlebench", "run", "exec", folder, "--gpus", gpus]
        parent_pipe, _our_end = os.pipe()  # the other end is open as long as this process lives
        with RunPaths(Path(folder)).runner_log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, PARENT_VARIABLE: str(parent_pipe), NODE_VARIABLE: name},
                pass_fds=[parent_pipe],
                start_new_session=True,
            )
        end = partial(ray.kill, context.current_actor)
        threading.Thread(target=self._await_end, args=(end,), daemon=True).start()

    def _await_end(self, end: Callable[[], None]) -> None:
        self._process.wait()
        end()  # an idle actor would keep its GPUs

    def stop(self) -> None:
        """End cleanly."""
        self._process.terminate()


def installed() -> Any:
    """Ray's package; a PrerequisiteError without it."""
    try:
        import ray  # pyright: ignore[reportMissingImports] it is an extra
    except ImportError:
        raise PrerequisiteError("--executor ray needs Ray: `pip install 'mlebench[ray]'`, here and on nodes") from None
    return ray


def connect(address: str | None) -> Any:
    """Ray, connected to a running cluster, or to one on this machine that lives as long as this program."""
    ray = installed()
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


def is_ours(address: str | None) -> bool:
    """Whether Ray is started on this machine, for one command."""
    return (address or os.environ.get(ADDRESS_VARIABLE) or "local") == "local"


def _name(node: Mapping[str, Any]) -> str:
    """A node's name: several may be on one host."""
    return f"{node['NodeManagerHostname']}-{node['NodeID'][:6]}"


def _alive(ray: Any) -> list[dict[str, Any]]:
    try:
        return [node for node in ray.nodes() if node["Alive"]]
    except Exception as error:  # Ray has many exceptions for the same problem
        raise SchedulerError(f"Ray does not answer: {error}") from error


def too_large(ray: Any, need: Resources) -> str | None:
    """Why no node that Ray has now can take a run."""
    wanted = {"CPU": need.cpus, "GPU": need.gpus, "memory": need.memory}
    have = [node["Resources"] for node in _alive(ray)]
    if any(all(node.get(name, 0) >= amount for name, amount in wanted.items()) for node in have):
        return None
    largest = {name: max((node.get(name, 0) for node in have), default=0) for name in wanted}
    needs, has = (
        f"{amounts['CPU']:g} CPUs, {amounts['GPU']:g} GPUs and {amounts['memory'] / 1e9:.1f} GB"
        for amounts in (wanted, largest)
    )
    return f"a run needs {needs}, and no node of this Ray has that: the most that one has is {has}"


def submit_to_nodes(command: Callable[[Path], list[str]], folder: Path, address: str | None, most: int) -> list[str]:
    """Start a small task on each node, which writes to a file named after it; return the nodes' names."""
    ray = connect(address)
    node_ids = {_name(node): node["NodeID"] for node in _alive(ray)[:most]}
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    for name, id in node_ids.items():
        task = ray.remote(subprocess.run).options(num_cpus=0, scheduling_strategy=strategy(id, soft=False))
        task.remote(command(folder / name))
    return list(node_ids)
