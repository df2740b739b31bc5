"""What an agent finds when it is started: folders, texts and variables, the same in every sandbox."""

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mlebench.agents import Agent, base_python, npm_dir, venv_of
from mlebench.agents.folders import environment_dir
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.gateway.proxy import GatewayProxy
from mlebench.records.run_groups import Group, Run, limits_of
from mlebench.registry import Competition
from mlebench.run.gpus import GpuLease
from mlebench.run.images import image_facts
from mlebench.run.packages import packages_words
from mlebench.run.python_environment import ENVIRONMENT, PythonEnvironment
from mlebench.run.shared_folders import SHARED_FOLDERS, WEIGHTS, weights_variables
from mlebench.sandbox import Sandbox
from mlebench.sandbox.base import HOME, Bind, Task, hidden_paths, interpreter_prefixes

VALIDATOR = "validator"  # the proxy
VALIDATOR_PORTS = (5000, 5001, 5005)  # where existing agents look for it
MODEL = "model"  # the other proxy
MODEL_PORT = 4000
CONDA = "/opt/conda"
NPM = "/opt/npm"
PACKED = (".zip", ".7z")


@dataclass(frozen=True)
class AgentFolders:
    """Where the agent sees its folders."""

    home: str
    data: str


def make_task(
    group: Group,
    run: Run,
    agent: Agent,
    competition: Competition,
    sandbox: Sandbox,
    token: str,
    gpus: GpuLease,
    port: int | None,
) -> Task:
    """Fill the folders of a run and say how to start it."""
    work = group.paths.work(token)
    _make_folders(work)
    public = _public(group, work, competition)
    _require_readable(public)
    data = Bind(public, f"{HOME}/data")
    folders = AgentFolders(sandbox.home(work), sandbox.path_of(data))
    _write_texts(work / "home", group, folders)
    sample = _plain_sample(competition, work / "home", folders)
    programs = _agent_files(agent, work / "home" / "agent", sandbox)
    environment = ENVIRONMENT.of(group.record)
    venv = None if environment else venv_of(agent)
    python = environment.binds() if environment else _python(venv)
    ports = (port,) if port else VALIDATOR_PORTS
    return Task(
        name=token,
        command=agent.command(f"{folders.home}/agent"),
        work=work,
        limits=limits_of(group),
        binds=(data, *programs, *_shared(group), *python, *filter(None, [_npm(agent)]), *_conda(sandbox, python)),
        env=_environment(group, run, agent, sandbox, folders, ports[0])
        | _python_variables(group, agent, sandbox, environment, venv)
        | {"SAMPLE_SUBMISSION": sample},
        ports=dict.fromkeys(ports, VALIDATOR),
        network=group.record.network,
        gpus=gpus.names,
        held_descriptors=gpus.descriptors,
        **image_facts(agent, group.record.image),
        runtime=group.record.runtime,
        privileged=agent.privileged,
        retain=bool(group.record.retain),
        hidden=(
            *hidden_paths(),
            *map(Path, filter(None, [group.record.data_dir])),
            group.paths.root.parent,
            *(environment.hidden() if environment else ()),
        ),
    )


def _make_folders(work: Path) -> None:
    for name in (paths.SUBMISSION, paths.LOGS, paths.CODE, "agent"):
        (work / "home" / name).mkdir(parents=True)
    (work / "tmp").mkdir(mode=0o1777)


def _public(group: Group, work: Path, competition: Competition) -> Path:
    """The public folder; if obfuscated, links to its files under a path that does not name the competition."""
    if not group.record.obfuscate:
        return competition.public_dir
    target = work / "data"
    try:
        shutil.copytree(competition.public_dir, target, copy_function=os.link)
    except (OSError, shutil.Error) as error:
        raise PrerequisiteError(
            f"--obfuscate links the public files into the runs directory, which must be on the same disk: {error}"
        ) from error
    (target / paths.DESCRIPTION).unlink(missing_ok=True)
    (target / paths.DESCRIPTION).write_text(competition.obfuscated_description, encoding="utf-8")
    return target


def _require_readable(public: Path) -> None:
    """Root's sandboxes run as another user, who must be able to read the data."""
    if os.geteuid() == 0 and public.stat().st_mode & 0o005 != 0o005:
        raise PrerequisiteError(
            f"{public} is closed to other users, but agents run as another user: `chmod -R o+rX {public}`"
        )


def neutral_id(group: Group, competition: str) -> str:
    """A name for a competition that gives nothing away."""
    return "task-" + hashlib.sha256(f"{group.record.id}/{competition}".encode()).hexdigest()[:8]


def _agent_files(agent: Agent, agent_dir: Path, sandbox: Sandbox) -> list[Bind]:
    """Copy the agent's files, and bind its large programs: a copy of those for each run would take time and disk.

    Only where the agent cannot change what is bound read-only, which others will use.
    """
    without_programs = sandbox.is_isolated and not agent.privileged
    names = agent.copy_to(agent_dir, without_programs=without_programs)
    return [Bind(agent.folder / name, f"{HOME}/agent/{name}") for name in names]


def _write_texts(home: Path, group: Group, folders: AgentFolders) -> None:
    text = (environment_dir() / "instructions.txt").read_text(encoding="utf-8")
    for shared in SHARED_FOLDERS:
        if shared.path(group.record):
            text += f"\n{shared.name.capitalize()}\n  {f'{shared.target}/':<27}{shared.content}, read-only\n"
    text = text.replace(f"{HOME}/data", folders.data).replace(f"{HOME}/", f"{folders.home}/")
    if environment := ENVIRONMENT.path(group.record):  # its path is the host's, and may begin with /home
        version = group.record.environment_python
        text += f"\nPython\n  {f'{environment}/ ':<27}Python {version} with packages, first on the path, read-only\n"
    if group.record.packages:
        text += f"\nPackages\n  {'pip install NAME':<27}{packages_words(group.record)}\n"
    # The text names no competition, so it is the same for both; existing agents look for either name.
    for name in ("instructions.txt", "instructions_obfuscated.txt"):
        (home / name).write_text(text, encoding="utf-8")
    script = home / "validate_submission.sh"
    shutil.copyfile(environment_dir() / "validate_submission.sh", script)
    script.chmod(0o755)


def _plain_sample(competition: Competition, home: Path, folders: AgentFolders) -> str:
    """Where the agent finds the sample submission: among the public files, or a copy if it is packed there."""
    path = competition.public_sample or competition.sample_submission
    is_packed = path.suffix in PACKED
    if not is_packed and path.is_relative_to(competition.public_dir):
        return f"{folders.data}/{path.relative_to(competition.public_dir)}"
    from mlebench.kit.samples import public_sample_bytes

    copy = home / (path.stem if is_packed else path.name)
    copy.write_bytes(public_sample_bytes(competition))
    return f"{folders.home}/{copy.name}"


def _shared(group: Group) -> list[Bind]:
    return [bind for shared in SHARED_FOLDERS if (bind := shared.bind(group.record))]


def _weights(group: Group, sandbox: Sandbox) -> dict[str, str]:
    """What makes libraries load the weights that were given to the group."""
    bind = WEIGHTS.bind(group.record)
    return weights_variables(bind.source, sandbox.path_of(bind)) if bind else {}


def _python(venv: Path | None) -> list[Bind]:
    """An agent's own packages, and the Python they were made for, at their original paths."""
    if venv is None:
        return []
    return [Bind(folder, str(folder)) for folder in dict.fromkeys([base_python(venv), venv])]


def _npm(agent: Agent) -> Bind | None:
    """The programs of an agent that come from npm packages: bound, because they have hundreds of megabytes."""
    folder = npm_dir(agent)
    return Bind(folder, NPM) if folder else None


def _needs_conda(sandbox: Sandbox) -> bool:
    """Whether agents need stand-ins for conda's programs, which our images have and which cannot be put on a host."""
    return sandbox.is_isolated and not sandbox.runs_images


def _conda(sandbox: Sandbox, python: list[Bind]) -> list[Bind]:
    """Stand-ins for conda's programs."""
    if not _needs_conda(sandbox):
        return []
    source = environment_dir() / "conda"
    binds = [Bind(file, f"{CONDA}/{file.relative_to(source)}") for file in sorted(source.rglob("*")) if file.is_file()]
    pythons = {*interpreter_prefixes(Path(sys.base_prefix)), *(bind.source for bind in python)}
    if Path(CONDA) not in pythons:
        return binds
    # A real conda is there, and its Python is in use: its programs can be covered, but nothing can be added.
    return [bind for bind in binds if Path(bind.target).is_file() and bind.source.name != "python"]


def _environment(
    group: Group, run: Run, agent: Agent, sandbox: Sandbox, folders: AgentFolders, port: int
) -> dict[str, str]:
    obfuscated = group.record.obfuscate
    return {
        **_weights(group, sandbox),
        **_agents_own(group, agent),
        "HOME": folders.home,
        "USER": "nonroot",
        "LANG": "C.UTF-8",
        "COMPETITION_ID": neutral_id(group, run.record.competition) if obfuscated else run.record.competition,
        "DATA_DIR": folders.data,
        "SUBMISSION_DIR": f"{folders.home}/{paths.SUBMISSION}",
        "LOGS_DIR": f"{folders.home}/{paths.LOGS}",
        "CODE_DIR": f"{folders.home}/{paths.CODE}",
        "AGENT_DIR": f"{folders.home}/agent",
        "INSTRUCTIONS": f"{folders.home}/instructions.txt",
        "TIME_LIMIT_SECS": f"{limits_of(group).seconds:.0f}",
        "SEED": str(run.record.seed),
        "VALIDATOR_URL": f"http://localhost:{port}/validate",
        **({"NPM_DIR": sandbox.path_of(programs)} if (programs := _npm(agent)) else {}),
    }


def _python_variables(
    group: Group, agent: Agent, sandbox: Sandbox, environment: PythonEnvironment | None, venv: Path | None
) -> dict[str, str]:
    """Which programs come first: those of the environment that was named, else of the agent's venv."""
    prefix = environment.prefix if environment else venv
    search = [f"{prefix}/bin"] if prefix else []
    search += sandbox.search_path(image_facts(agent, group.record.image)["image"])
    search += [f"{CONDA}/bin"] if _needs_conda(sandbox) else []
    active = environment.variables() if environment else {"VIRTUAL_ENV": str(venv)} if venv else {}
    return {"PATH": ":".join(search), **active}


def _agents_own(group: Group, agent: Agent) -> Mapping[str, str]:
    """The variables that the agent's folder asks for. Secrets enter only with an open network."""
    if group.record.network == "model":
        return agent.env  # the stand-ins for its secrets come with the proxy
    return agent.environment(os.environ if group.record.network == "full" else {})


def with_proxies(task: Task, agent: Agent, validator: Path, model: GatewayProxy | None, model_port: int) -> Task:
    """The task with the proxies that its ports lead to."""
    task = replace(task, proxies={VALIDATOR: validator})
    if model is None:
        return task
    return replace(
        task,
        proxies=task.proxies | {MODEL: model.socket},
        ports=task.ports | {model_port: MODEL},
        env=task.env | model.variables(model_port, agent.secrets),
    )
