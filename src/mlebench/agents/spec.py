"""An agent: a folder with a config.yaml in the reference's form, and one entry of that file.

An entry names the script that starts the agent, its arguments and its variables. Paths are relative to the folder's
parent. `options`, `model`, `scaffold`, `knowledge`, `requirements`, `python`, `environment`, `needs_model`,
`shares` and `host_only` are ours; the last two are for built-in agents only.
"""

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from mlebench.agents.folders import copy_files, identity
from mlebench.config import Keys, read_yaml
from mlebench.core import paths
from mlebench.core.errors import ConfigError, PrerequisiteError
from mlebench.core.suggestions import did_you_mean
from mlebench.records.group import AgentFacts
from mlebench.registry import Competition

COMMAND = "command"  # the built-in agent that runs what --agent-command says
_SECRET = re.compile(r"\$\{\{\s*secrets\.(\w+)\s*\}\}")
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OBFUSCATE = "OBFUSCATE"  # set by folders written for the reference to hide a task's name
_OPTION = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_ID = re.compile(r"\w[\w./@+-]{0,99}")
_ARGUMENTS: dict[str, Callable[[str, Any], list[str]]] = {
    "argparse": lambda key, value: [f"--{key}", str(value)],
    "omegaconf": lambda key, value: [f"{key}={value}"],
}
_KEYS = {
    *("start", "dockerfile", "kwargs_type", "kwargs", "env_vars", "privileged"),
    *("options", "model", "scaffold", "knowledge", "requirements", "python", "environment", "needs_model"),
    *("shares", "host_only"),
}


@dataclass(frozen=True)
class Agent:
    """What runs, and with what. File names are relative to the folder."""

    name: str  # what standings show
    spec: str  # what `load_agent` was asked for, with an absolute folder
    folder: Path
    identity: str  # equal for equal files (and the same command)
    start: str | None
    arguments: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)  # arguments that --agent-option set
    shell_command: str | None = None  # what --agent-command said
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)  # variable: the name of the secret
    privileged: bool = False
    obfuscate: bool = False
    dockerfile: str | None = None
    model: str | None = None
    scaffold: str | None = None
    knowledge: tuple[str, ...] = ()
    requirements: str | None = None
    python: str | None = None
    python_environment: Path | None = (
        None  # a conda environment or a venv of this machine, instead of a venv of its own
    )
    needs_model: bool = False
    shares: tuple[str, ...] = ()  # files of built-in agents that are placed beside its own when it runs
    host_only: bool = False

    @property
    def needs_network(self) -> bool:
        """Whether it needs a network: it has a model, or secrets to use somewhere."""
        return bool(self.secrets or self.model or self.needs_model)

    def command(self, agent_dir: str) -> tuple[str, ...]:
        """What runs inside a sandbox, where the folder's files are in `agent_dir`."""
        if self.start is None:
            raise PrerequisiteError(f"the agent {self.name} runs on the host only, not in a sandbox")
        return ("bash", f"{agent_dir}/{self.start}", *self.arguments)

    def environment(self, secrets: Mapping[str, str]) -> dict[str, str]:
        """Its variables, with the secrets they name."""
        for secret in self.secrets.values():
            if not secrets.get(secret):
                raise PrerequisiteError(f"the agent {self.name} needs a secret: set the variable {secret}")
        return {**self.env, **{variable: secrets[secret] for variable, secret in self.secrets.items()}}

    def copy_to(self, agent_dir: Path, *, without_programs: bool = False) -> tuple[str, ...]:
        """Copy the folder's files; PrerequisiteError if they are no longer those that were loaded.

        Returns the large programs that are empty in the copy, if it is to be without them.
        """
        shared = _shared(self.shares, self.folder)
        copied = copy_files(self.folder, agent_dir, shared, without_programs=without_programs)
        if _with_command(copied.identity, self.shell_command) != self.identity:
            raise PrerequisiteError(f"{self.folder} has changed since the run was planned")
        return copied.shareable

    def submit(self, competition: Competition, submission: Path) -> None:
        """Let an agent that is `host_only` write its submission."""
        if not self.host_only:
            raise PrerequisiteError(f"the agent {self.name} runs in a sandbox, not on the host")
        import_module(f"mlebench.agents.{self.folder.name}").submit(competition, submission)

    def facts(self) -> AgentFacts:
        """What the record of a run says about it; secrets by name only."""
        environment = self.python_environment and str(self.python_environment)
        texts = {"folder": str(self.folder), "python_environment": environment}
        return msgspec.convert(asdict(self) | texts, AgentFacts)


def built_in() -> list[str]:
    """The names of the agents that ship with the package."""
    return sorted(config.parent.name for config in paths.agents_dir().glob(f"*/{paths.CONFIG}"))


def load_agent(text: str, command: str | None = None, options: Mapping[str, str] | None = None) -> Agent:
    """The agent named by `NAME`, `FOLDER`, `NAME#ID` or `FOLDER#ID`. A built-in name wins over a folder.

    `options` replace or add to the `kwargs` of its config.yaml.
    """
    base, _, id = text.partition("#")
    is_built_in = base in built_in()
    folder = paths.agents_dir() / base if is_built_in else paths.resolved(Path(base).expanduser())
    if not folder.is_dir() or not base:
        names = built_in()
        hint = did_you_mean(base, names, f"the built-in agents are {', '.join(names)}")
        raise PrerequisiteError(f"there is no agent {base!r}, neither as a folder nor built in; {hint}")
    if (is_built_in and base == COMMAND) != (command is not None):
        raise PrerequisiteError(f"the agent `{COMMAND}` and --agent-command go together: give both or neither")
    if command is not None and options:
        raise PrerequisiteError(f"the agent `{COMMAND}` takes no --agent-option: write it into --agent-command")
    files = identity(folder)  # before anything is read: a folder with links or pipes is refused
    config = folder / paths.CONFIG
    entries = read_yaml(config)
    id = id or _only_id(config, entries)
    if not isinstance(entry := entries.get(id), dict):
        raise ConfigError(f"{config} has no agent {id!r}; it has {', '.join(_ids(entries)) or 'none'}")
    if not _ID.fullmatch(id):
        raise ConfigError(f"{config}: the id {id!r} must consist of letters, digits and ./@+-_, at most 100 of them")
    keys = Keys(config, entry, f"{id}.")
    keys.only(_KEYS)
    shares = _texts(keys, "shares")
    for file in shares:
        if not re.fullmatch(r"\w+/[\w.]+", file) or not (paths.agents_dir() / file).is_file():
            raise keys.error("shares", f"names {file!r}, which is not a file of a built-in agent")
    return Agent(
        name=id,
        spec=f"{base if is_built_in else folder}#{id}",
        folder=folder,
        identity=_with_command(identity(folder, _shared(shares, folder)) if shares else files, command),
        shares=shares,
        arguments=_arguments(keys, _valid(options or {}, keys, id)) if command is None else (command,),
        options=dict(options or {}),
        shell_command=command,
        **_environment(keys),
        **_programs(keys, folder, is_built_in),
        privileged=keys.get("privileged", bool, default=False),
        model=keys.get("model", str, default=None),
        scaffold=keys.get("scaffold", str, default=None),
        knowledge=_texts(keys, "knowledge"),
        needs_model=keys.get("needs_model", bool, default=False),
    )


def _shared(files: tuple[str, ...], folder: Path) -> list[Path]:
    """What a folder takes from built-in agents; a copy of one may already have it."""
    return [path for file in files if not (folder / (path := paths.agents_dir() / file).name).exists()]


def _with_command(files: str, command: str | None) -> str:
    """The identity of `command` includes what it runs, which its folder does not say."""
    return files if command is None else hashlib.sha256(f"{files}\0{command}".encode()).hexdigest()


def _ids(entries: Mapping[Any, Any]) -> list[str]:
    """Entries that can be started. The others hold shared settings."""
    return [str(id) for id, entry in entries.items() if isinstance(entry, dict) and {"start", "host_only"} & {*entry}]


def _only_id(config: Path, entries: Mapping[Any, Any]) -> str:
    """The entry used when none is named: the one with the folder's name, or the only one."""
    ids = _ids(entries)
    if config.parent.name in ids:
        return config.parent.name
    if not ids:
        raise ConfigError(f"{config} has no agent: an entry with `start`")
    if len(ids) > 1:
        raise ConfigError(f"{config} has the agents {', '.join(ids)}: say which, as {config.parent.name}#ID")
    return ids[0]


def _valid(options: Mapping[str, str], keys: Keys, id: str) -> dict[str, Any]:
    """The options of --agent-option. An entry with `options` has those and its `kwargs`; any other takes all."""
    values = keys.get("kwargs", dict, default={})
    known = [*map(str, values), *_texts(keys, "options")]
    takes_any = keys.get("options", list, default=None) is None
    for name, text in options.items():
        if not _OPTION.fullmatch(name) or not (takes_any or name in known):
            raise PrerequisiteError(f"the agent {id} has no option {name!r}; it has {', '.join(known) or 'none'}")
        if "${{" in text:
            raise PrerequisiteError(f"the option {name} must not be a secret, which others could see: use env_vars")
        _require_kind(name, text, values.get(name))
    if options and keys.get("kwargs_type", str, default=None) is None:
        raise PrerequisiteError(f"the agent {id} takes no options: its {paths.CONFIG} has no kwargs_type")
    return dict(options)


def _require_kind(name: str, text: str, default: Any) -> None:
    """An option whose default is a number or a boolean must be one, too."""
    if isinstance(default, bool):
        if text not in ("True", "False"):
            raise PrerequisiteError(f"the option {name} must be True or False, not {text!r}")
    elif isinstance(default, int | float):
        try:
            is_number = math.isfinite(float(text))
        except ValueError:
            is_number = False
        if not is_number:
            raise PrerequisiteError(f"the option {name} must be a number, not {text!r}")


def _arguments(keys: Keys, options: Mapping[str, Any]) -> tuple[str, ...]:
    """As the reference passes them to the script: values in Python's spelling, in file order."""
    values = {**keys.get("kwargs", dict, default={}), **options}
    kind = keys.get("kwargs_type", str, default=None)
    if kind is not None and kind not in _ARGUMENTS:
        raise keys.error("kwargs_type", f"must be one of {', '.join(_ARGUMENTS)}, not {kind!r}")
    if values and kind is None:
        raise keys.error("kwargs_type", "is missing: kwargs can be argparse or omegaconf")
    for key, value in values.items():
        if "${{" in str(value):
            raise keys.error(f"kwargs.{key}", "must not be a secret, which others could see: use env_vars")
    return tuple(word for key, value in values.items() for word in _ARGUMENTS[str(kind)](key, value))


def _environment(keys: Keys) -> dict[str, Any]:
    env: dict[str, str] = {}
    secrets: dict[str, str] = {}
    for variable, value in keys.get("env_vars", dict, default={}).items():
        if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
            raise keys.error(f"env_vars.{variable}", "is not a name that a variable can have")
        if not isinstance(value, str | int | float) or "\0" in str(value):
            raise keys.error(f"env_vars.{variable}", f"must be text, a number, true or false, not {value!r}")
        if secret := _SECRET.fullmatch(str(value).strip()):
            secrets[variable] = secret[1]
        elif "${{" in str(value):
            raise keys.error(f"env_vars.{variable}", "must be ${{ secrets.NAME }} and nothing else")
        else:
            env[variable] = str(value)
    # Scripts that see it move texts around, which needs writable folders. We hide the name before they start.
    obfuscate = env.pop(_OBFUSCATE, "false").lower()
    if obfuscate not in ("true", "false"):
        raise keys.error(f"env_vars.{_OBFUSCATE}", f"must be true or false, not {obfuscate!r}")
    return {"env": env, "secrets": secrets, "obfuscate": obfuscate == "true"}


def _programs(keys: Keys, folder: Path, is_built_in: bool) -> dict[str, Any]:
    host_only = keys.get("host_only", bool, default=False)
    if host_only and not is_built_in:
        raise keys.error("host_only", "is for built-in agents: all others run in a sandbox")
    python = keys.get("python", (str, int, float), default=None)
    if python is not None and not re.fullmatch(r"3\.\d+", python if isinstance(python, str) else ""):
        raise keys.error("python", f'must be a version in quotes, such as "3.12", not {python!r}')
    return {
        "start": None if host_only else _file(keys, "start", folder, required=True),
        "dockerfile": _file(keys, "dockerfile", folder),
        "requirements": _file(keys, "requirements", folder),
        "python": python,
        "python_environment": _python_environment(keys),
        "host_only": host_only,
    }


def _python_environment(keys: Keys) -> Path | None:
    text = keys.get("environment", str, default=None)
    if text is None:
        return None
    path = Path(text).expanduser()
    if not path.is_absolute():
        raise keys.error("environment", f"must be an absolute path of this machine, not {text!r}")
    return path


def _file(keys: Keys, key: str, folder: Path, *, required: bool = False) -> str | None:
    """A file of the folder, written relative to the folder's parent."""
    text = keys.get(key, str) if required else keys.get(key, str, default=None)
    if text is None:
        return None
    first, *parts = PurePosixPath(text).parts or ("",)
    if first != folder.name or not parts or ".." in parts:
        raise keys.error(key, f"must begin with the folder's name, {folder.name}/, and stay in it; it is {text!r}")
    if not folder.joinpath(*parts).is_file():
        raise keys.error(key, f"names {text}, but there is no such file")
    return "/".join(parts)


def _texts(keys: Keys, key: str) -> tuple[str, ...]:
    values = keys.get(key, list, default=[])
    if not all(isinstance(value, str) for value in values):
        raise keys.error(key, f"must be a list of strings, not {values!r}")
    return tuple(values)
