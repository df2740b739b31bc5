"""Turns a request into folders on disk: a group, and a planned run for every competition and seed."""

import json
import os
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from mlebench.agents import Agent, venv_fault
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import write_whole
from mlebench.core.os_errors import reason_of
from mlebench.data.modes import restore_modes
from mlebench.data.state import command_to_prepare, holds_twins, preparation_fault, require_prepared, twin_elsewhere
from mlebench.gateway.access import ModelAccess
from mlebench.gateway.door import refuse_other_secrets
from mlebench.records import now, write
from mlebench.records.base import from_dict
from mlebench.records.group import GroupRecord, Limits, Network, Placement, Requested
from mlebench.records.run import RunRecord
from mlebench.records.run_groups import Group
from mlebench.registry import Registry
from mlebench.run import knowledge, machine
from mlebench.run.executors import Resources
from mlebench.run.gpus import Choice, refuse_crowd
from mlebench.run.images import image_facts
from mlebench.run.schedulers import refusal
from mlebench.sandbox import Sandbox
from mlebench.sandbox.base import Task

ACCEPT_PRIVILEGED = "I_ACCEPT_RUNNING_PRIVILEGED_CONTAINERS"


@dataclass(frozen=True)
class Request:
    """The run group that `mlebench run` asks for."""

    agent: Agent
    agent_source: str
    competitions: Sequence[str]
    registry: Registry
    runs_dir: Path
    sandbox: Sandbox
    auto_sandbox: bool = False  # this machine's best one, because none was requested
    agent_command: str | None = None
    seeds: int = 1
    workers: int = 1
    requested: Requested = Requested()  # limits
    network: Network = "none"
    model: ModelAccess | None = None  # for the network `model`
    obfuscate: bool = False
    knowledge: Path | None = None
    retain: bool = False
    image: str | None = None
    runtime: str | None = None
    like: str | None = None
    placement: Placement = Placement()
    gpus: Choice = field(default_factory=Choice)  # if a scheduler assigns them, only how many


def plan(request: Request) -> Group:
    """Write the group and its runs. Raises now, in one line, for anything that would make every run fail."""
    _refuse(request)
    remote = request.placement.is_remote
    limits = machine.limits_for(request.requested, request.workers, request.runs_dir, elsewhere=remote)
    if remote and (fault := refusal(request.placement, Resources.of(limits, request.gpus.share))):
        raise PrerequisiteError(f"these runs could never start: {fault}")
    name = f"{paths.timestamp()}_run-group_{request.agent.folder.name}"
    try:
        request.runs_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PrerequisiteError(f"cannot create {request.runs_dir}: {reason_of(error)}") from error
    root = _new_folder(request.runs_dir, name)
    where = paths.GroupPaths(root)
    record = _group_record(request, root.name, limits)
    try:
        from_dict(record.to_dict(), GroupRecord, "this run group")
    except PrerequisiteError:
        root.rmdir()
        raise
    _write_runs(where, record)
    # The group's record comes last: a folder without it is not a group, so nothing counts as planned.
    write(where.record, record)
    return Group(where, record)


def _group_record(request: Request, id: str, limits: Limits) -> GroupRecord:
    return GroupRecord(
        id=id,
        created_at=now(),
        agent=request.agent.facts(),
        agent_source=request.agent_source,
        agent_command=request.agent_command,
        agent_options=dict(request.agent.options),
        competitions=list(request.competitions),
        seeds=request.seeds,
        data_dir=str(request.registry.get_data_dir()),
        profile=request.registry.profile,
        twin=holds_twins(request.registry.get_data_dir()),
        sandbox="host" if request.agent.host_only else request.sandbox.name,
        image=request.image,
        runtime=request.runtime,
        limits=limits,
        requested=_requested(request),
        gpus_per_run=request.gpus.share,
        runs_per_gpu=request.gpus.runs_per_gpu,
        network=request.network,
        model=request.model.facts() if request.model else None,
        obfuscate=request.obfuscate or request.agent.obfuscate,
        knowledge=None if request.knowledge is None else str(request.knowledge.absolute()),
        knowledge_sha256=None if request.knowledge is None else knowledge.identity(request.knowledge),
        retain=request.retain,
        workers=request.workers,
        machine=machine.describe(),
        like=request.like,
        executor=request.placement,
    )


def _requested(request: Request) -> Requested:
    """What does not depend on the machine, among the conditions that may."""
    return msgspec.structs.replace(request.requested, sandbox=None if request.auto_sandbox else request.sandbox.name)


def _write_runs(where: paths.GroupPaths, record: GroupRecord) -> None:
    names: list[str] = []
    blank = RunRecord(run_id="", competition="", seed=0, planned_at=now()).to_dict()  # once: there may be thousands
    for seed in range(record.seeds):
        for competition in record.competitions:
            run = {"run_id": str(uuid.uuid4()), "competition": competition, "seed": seed}
            folder = where.run(competition, run["run_id"])
            folder.root.mkdir()
            folder.record.write_text(json.dumps(blank | run, indent=1) + "\n", encoding="utf-8")
            names.append(folder.root.name)
    write_metadata(where, record, dict.fromkeys(names, False))


def write_metadata(where: paths.GroupPaths, record: GroupRecord, success: dict[str, bool]) -> None:
    """metadata.json as existing tools read it: the runs, and whether each one finished."""
    data = {
        "run_group": record.id,
        "created_at": record.id.partition("_")[0],
        "runs": {name: {"success": done} for name, done in success.items()},
    }
    write_whole(where.metadata, json.dumps(data, indent=4))


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


def _refuse(request: Request) -> None:
    agent = request.agent
    if not request.competitions:
        raise PrerequisiteError("there is no competition to run on: name one with -c, --split or --list")
    if agent.needs_network and request.network == "none" and not agent.host_only:
        raise PrerequisiteError(
            f"agent {agent.name} declares a model or secrets, but would have no network: "
            f"give it `--network model` or `--network full`"
        )
    _refuse_network(request)
    if agent.privileged and os.environ.get(ACCEPT_PRIVILEGED, "").lower() not in ("true", "1", "t"):
        raise PrerequisiteError(
            f"agent {agent.name} wants a privileged container, from which the host can be reached: "
            f"set {ACCEPT_PRIVILEGED}=True if that is acceptable"
        )
    if fault := venv_fault(agent):
        raise PrerequisiteError(f"agent {agent.name} is {fault}")
    refuse_crowd(request.gpus, request.workers)
    if request.runtime and request.sandbox.name != "docker":
        raise PrerequisiteError(f"the runtime {request.runtime} of --container-config is for --sandbox docker only")
    here = not (agent.host_only or request.placement.is_remote)  # a node reports for itself what it cannot do
    if here and (fault := request.sandbox.fault(_sketch(request))):
        raise PrerequisiteError(f"the sandbox {request.sandbox.name} cannot be used: {fault}")
    _refuse_unprepared(request.registry, request.competitions)
    if request.knowledge is not None:
        forbidden = (request.registry.get_data_dir(), request.runs_dir)
        knowledge.refuse(request.knowledge, forbidden, map(request.registry.get_competition, request.competitions))


def _refuse_network(request: Request) -> None:
    """Refuse runs that would lack a model or a secret."""
    if request.network == "model":
        if request.model is None:
            raise PrerequisiteError("`--network model` needs a model: name it with --model")
        refuse_other_secrets(request.agent.secrets.items())
    elif request.network == "full":
        request.agent.environment(os.environ)


def _sketch(request: Request) -> Task:
    """As much of the runs' tasks as a sandbox needs to check whether it can run them."""
    agent = request.agent
    asked = {"network": request.network, "privileged": agent.privileged, "runtime": request.runtime}
    return Task("", (), Path(), Limits(seconds=0), gpus=request.gpus.pool, **asked, **image_facts(agent, request.image))


def _refuse_unprepared(registry: Registry, ids: Iterable[str]) -> None:
    competitions = [registry.get_competition(id) for id in dict.fromkeys(ids)]
    lacking = [competition for competition in competitions if preparation_fault(competition)]
    for competition in competitions:
        restore_modes(competition.paths)
    if len(lacking) == 1:
        require_prepared(lacking[0])
    if lacking:
        some = ", ".join(one.id for one in lacking[:5]) + (" …" if len(lacking) > 5 else "")
        command = command_to_prepare(lacking[0], *(f"-c {one.id}" for one in lacking[1:5]))
        raise PrerequisiteError(
            f"{len(lacking)} of the competitions are not prepared in {registry.get_data_dir()} ({some}): "
            f"run `{command}`{' and so on' if len(lacking) > 5 else ''}.{twin_elsewhere(lacking)}"
        )


def as_request_facts(record: GroupRecord) -> dict[str, Any]:
    """The request that a group was planned from, for `--like`."""
    kept = (
        "agent_source",
        "agent_command",
        "agent_options",
        "competitions",
        "seeds",
        "sandbox",
        "image",
        "runtime",
        "network",
        "obfuscate",
        "runs_per_gpu",
    )
    more = ("knowledge", "knowledge_sha256", "retain", "workers", "limits", "profile")
    return {name: getattr(record, name) for name in (*kept, *more)}
