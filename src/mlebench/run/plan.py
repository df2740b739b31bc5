"""Turns a request into folders on disk: a group, and a planned run for every competition and seed."""

import json
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mlebench.agents import Agent, install_fault, load_agent
from mlebench.agents.spec import COMMAND
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import write_whole
from mlebench.core.os_errors import reason_of
from mlebench.data.modes import restore_modes
from mlebench.data.state import command_to_prepare, holds_twins, preparation_fault, require_prepared, twin_elsewhere
from mlebench.gateway.access import ModelAccess
from mlebench.gateway.proxy import refuse_other_secrets
from mlebench.records import now, write
from mlebench.records.base import from_dict
from mlebench.records.group import ExecutorConfig, GroupRecord, Limits, RequestedLimits
from mlebench.records.run import RunRecord
from mlebench.records.run_groups import Group
from mlebench.registry import Registry
from mlebench.run import hardware, packages
from mlebench.run.container_config import ContainerConfig, read_container_config
from mlebench.run.executors import Resources
from mlebench.run.gpus import GpuPool, choose, refuse_crowd
from mlebench.run.images import image_facts
from mlebench.run.python_environment import ENVIRONMENT
from mlebench.run.request import AUTO, ModelRequest, Request
from mlebench.run.schedulers import choose_executor, gpus_per_run, refusal
from mlebench.run.shared_folders import KNOWLEDGE, SHARED_FOLDERS, WEIGHTS
from mlebench.sandbox import ON_NODES, UNISOLATED, Sandbox, best_sandbox, sandbox_named
from mlebench.sandbox.base import Task

ACCEPT_PRIVILEGED = "I_ACCEPT_RUNNING_PRIVILEGED_CONTAINERS"


@dataclass(frozen=True)
class Plan:
    """A request with everything looked up that it names."""

    request: Request
    agent: Agent
    registry: Registry
    competitions: tuple[str, ...]
    runs_dir: Path
    sandbox: Sandbox
    environment: Path | None
    requested: RequestedLimits  # limits and sandbox, without what the machine decides
    limits: Limits
    runtime: str | None  # of containers
    model: ModelAccess | None  # for the network `model`
    executor: ExecutorConfig
    gpus: GpuPool  # if a scheduler assigns them, only how many


def make_plan(request: Request) -> Plan:
    """Look up what a request names. Raises PrerequisiteError for what does not exist or cannot go together."""
    registry = Registry(request.data_dir or paths.default_data_dir(twin=request.twin), request.profile)
    for id in request.competitions:
        registry.get_competition(id)
    agent = load_agent(request.agent or COMMAND, request.agent_command, request.agent_options)
    executor_config = choose_executor(request.executor, request.slurm_options, request.ray_address)
    config = read_container_config(request.container_config) if request.container_config else ContainerConfig()
    gpus = request.gpus or (None if config.gpus is None else ",".join(config.gpus) or "none")
    environment = request.environment or agent.python_environment
    sandbox = _sandbox(request.sandbox, agent, executor_config, with_images=environment is None)
    limits = {"seconds": request.time_limit, "memory": request.memory, "cpus": request.cpus, "shm": request.shm}
    requested = msgspec.structs.replace(
        config.requested,
        **{limit: value for limit, value in limits.items() if value is not None},
        sandbox=None if request.sandbox == AUTO else sandbox.name,
    )
    runs_dir = (request.runs_dir or paths.default_runs_dir(registry.get_data_dir())).absolute()
    model = (request.model or ModelRequest()).access(agent.model) if request.network == "model" else None
    return Plan(
        request,
        agent,
        registry,
        tuple(dict.fromkeys(request.competitions)),
        runs_dir,
        sandbox,
        environment,
        requested,
        hardware.limits_for(requested, request.workers, runs_dir, elsewhere=executor_config.is_remote),
        config.runtime or request.runtime,
        model,
        executor_config,
        _gpus("none" if agent.host_only else gpus, request, executor_config),
    )


def _gpus(text: str | None, request: Request, executor_config: ExecutorConfig) -> GpuPool:
    if executor_config.is_remote:
        return GpuPool((), gpus_per_run(text, request.runs_per_gpu))
    return choose(text, request.workers, request.runs_per_gpu)


def _sandbox(name: str, agent: Agent, executor_config: ExecutorConfig, *, with_images: bool) -> Sandbox:
    if agent.host_only:
        return UNISOLATED()
    if name == AUTO and executor_config.is_remote:
        return ON_NODES()
    return best_sandbox(with_images=with_images) if name == AUTO else sandbox_named(name)


def write_plan(plan: Plan) -> Group:
    """Write the group and its runs. Raises now, in one line, for anything that would make every run fail."""
    _refuse(plan)
    name = f"{paths.timestamp()}_run-group_{plan.agent.folder.name}"
    try:
        plan.runs_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PrerequisiteError(f"cannot create {plan.runs_dir}: {reason_of(error)}") from error
    root = _new_folder(plan.runs_dir, name)
    group_paths = paths.GroupPaths(root)
    record = _group_record(plan, root.name)
    try:
        from_dict(record.to_dict(), GroupRecord, "this run group")
    except PrerequisiteError:
        root.rmdir()
        raise
    _write_runs(group_paths, record)
    # The group's record comes last: a folder without it is not a group, so nothing counts as planned.
    write(group_paths.record, record)
    return Group(group_paths, record)


def _group_record(plan: Plan, id: str) -> GroupRecord:
    request, agent = plan.request, plan.agent
    return GroupRecord(
        id=id,
        created_at=now(),
        agent=agent.facts(),
        agent_source=agent.spec,
        agent_command=request.agent_command,
        agent_options=dict(agent.options),
        competitions=list(plan.competitions),
        seeds=request.seeds,
        data_dir=str(plan.registry.get_data_dir()),
        profile=plan.registry.profile,
        twin=holds_twins(plan.registry.get_data_dir()),
        sandbox="host" if agent.host_only else plan.sandbox.name,
        image=request.image,
        runtime=plan.runtime,
        limits=plan.limits,
        requested=plan.requested,
        gpus_per_run=plan.gpus.share,
        runs_per_gpu=plan.gpus.runs_per_gpu,
        network=request.network,
        model=plan.model.facts() if plan.model else None,
        obfuscate=request.obfuscate or agent.obfuscate,
        **KNOWLEDGE.fields(request.knowledge),
        **WEIGHTS.fields(request.weights),
        **ENVIRONMENT.fields(plan.environment),
        **packages.fields(request),
        retain=request.retain,
        workers=request.workers,
        machine=hardware.describe(),
        like=request.origin,
        executor=plan.executor,
    )


def _write_runs(group_paths: paths.GroupPaths, record: GroupRecord) -> None:
    names: list[str] = []
    blank = RunRecord(run_id="", competition="", seed=0, planned_at=now()).to_dict()  # once: there may be thousands
    for seed in range(record.seeds):
        for competition in record.competitions:
            run = {"run_id": str(uuid.uuid4()), "competition": competition, "seed": seed}
            folder = group_paths.run(competition, run["run_id"])
            folder.root.mkdir()
            folder.record.write_text(json.dumps(blank | run, indent=1) + "\n", encoding="utf-8")
            names.append(folder.root.name)
    write_metadata(group_paths, record, dict.fromkeys(names, False))


def write_metadata(group_paths: paths.GroupPaths, record: GroupRecord, success: dict[str, bool]) -> None:
    """metadata.json as existing tools read it: the runs, and whether each one finished."""
    data = {
        "run_group": record.id,
        "created_at": record.id.partition("_")[0],
        "runs": {name: {"success": done} for name, done in success.items()},
    }
    write_whole(group_paths.metadata, json.dumps(data, indent=4))


def _new_folder(runs_dir: Path, name: str) -> Path:
    """Two groups of one agent may be started in the same second."""
    for number in range(1, 1000):
        folder = runs_dir / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise PrerequisiteError(f"{runs_dir} already holds a thousand groups from this second")


def _refuse(plan: Plan) -> None:
    request, agent = plan.request, plan.agent
    if agent.needs_network and request.network == "none" and not agent.host_only:
        raise PrerequisiteError(
            f"agent {agent.name} declares a model or secrets, but would have no network: "
            f"give it `--network model` or `--network full`"
        )
    if request.network == "model":
        refuse_other_secrets(agent.secrets.items())
    elif request.network == "full":
        agent.environment(os.environ)
    if agent.privileged and os.environ.get(ACCEPT_PRIVILEGED, "").lower() not in ("true", "1", "t"):
        raise PrerequisiteError(
            f"agent {agent.name} wants a privileged container, from which the host can be reached: "
            f"set {ACCEPT_PRIVILEGED}=True if that is acceptable"
        )
    if fault := install_fault(agent, has_environment=plan.environment is not None):
        raise PrerequisiteError(f"agent {agent.name} is {fault}")
    refuse_crowd(plan.gpus, request.workers)
    if plan.runtime and not plan.sandbox.takes_runtimes:
        raise PrerequisiteError(f"the runtime {plan.runtime} of --container-config is for --sandbox docker only")
    is_local = not (agent.host_only or plan.executor.is_remote)  # a node reports for itself what it cannot do
    if is_local and (fault := plan.sandbox.fault(_sketch(plan))):
        raise PrerequisiteError(
            f"the sandbox {plan.sandbox.name} cannot be used: {fault}; `mlebench doctor` shows which ones work"
        )
    _refuse_unprepared(plan.registry, plan.competitions)
    _refuse_folders(plan)
    if plan.executor.is_remote and (fault := refusal(plan.executor, Resources.of(plan.limits, plan.gpus.share))):
        raise PrerequisiteError(f"these runs could never start: {fault}")


def _refuse_folders(plan: Plan) -> None:
    forbidden = (plan.registry.get_data_dir(), plan.runs_dir)
    for shared in SHARED_FOLDERS:
        if folder := getattr(plan.request, shared.name):
            shared.refuse(folder, forbidden, map(plan.registry.get_competition, plan.competitions))
    if plan.environment:
        ENVIRONMENT.refuse(plan.environment, forbidden, plan.sandbox, agent=plan.agent)
    if source := plan.request.packages:
        packages.refuse(source, forbidden, map(plan.registry.get_competition, plan.competitions))


def _sketch(plan: Plan) -> Task:
    """As much of the runs' tasks as a sandbox needs to check whether it can run them."""
    agent, request = plan.agent, plan.request
    own = {"network": request.network, "privileged": agent.privileged, "runtime": plan.runtime}
    return Task("", (), Path(), Limits(seconds=0), gpus=plan.gpus.names, **own, **image_facts(agent, request.image))


def _refuse_unprepared(registry: Registry, ids: Iterable[str]) -> None:
    competitions = [registry.get_competition(id) for id in dict.fromkeys(ids)]
    lacking = [competition for competition in competitions if preparation_fault(competition)]
    for competition in competitions:
        restore_modes(competition.paths)
    if len(lacking) == 1:
        require_prepared(lacking[0], for_run=True)
    if lacking:
        names = ", ".join(competition.id for competition in lacking[:5]) + (" …" if len(lacking) > 5 else "")
        command = command_to_prepare(lacking[0], *(f"-c {competition.id}" for competition in lacking[1:5]))
        raise PrerequisiteError(
            f"{len(lacking)} of the competitions are not prepared in {registry.get_data_dir()} ({names}): "
            f"run `{command}`{' and so on' if len(lacking) > 5 else ''}.{twin_elsewhere(lacking, for_run=True)}"
        )
