"""An agent: a folder with a config.yaml in the reference's form, and one entry of that file.

An entry names the script that starts the agent, its arguments and its variables. Paths are relative to the folder's
parent. `options`, `file_options`, `model`, `scaffold`, `knowledge`, `requirements`, `python`, `environment`, `npm`,
`needs_model`, `shares` and `host_only` are ours; the last two are for built-in agents only.
"""

import hashlib
import math
import os
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
_NPM_NAME = re.compile(r"(@[a-z0-9-]+/)?[a-z0-9{][a-z0-9.{}-]*")
_INTEGRITY = re.compile(r"sha512-[A-Za-z0-9+/]{86}==")
_ARGUMENTS: dict[str, Callable[[str, Any], list[str]]] = {
    "argparse": lambda key, value: [f"--{key}", str(value)],
    "omegaconf": lambda key, value: [f"{key}={value}"],
}
_KEYS = {
    *("start", "dockerfile", "kwargs_type", "kwargs", "env_vars", "privileged"),
    *("options", "file_options", "model", "scaffold", "knowledge", "requirements", "python", "environment", "npm"),
    "needs_model",
    *("shares", "host_only"),
}


@dataclass(frozen=True)
class NpmPackage:
    """A package that holds a program of an agent, or one that such a program needs."""

    name: str
    version: str
    platform: str  # `linux-x64`, or `any`
    integrity: str | None  # its hash, as npm writes it; None: another version than the locked one was asked for
    is_program: bool  # whether it has the version of the agent's program

    @property
    def spec(self) -> str:
        return f"{self.name}@{self.version}"


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
    npm: tuple[NpmPackage, ...] = ()  # for all platforms
    python_environment: Path | None = (
        None  # a conda environment or a venv of this machine, instead of a venv of its own
    )
    needs_model: bool = False
    option_files: tuple[Path, ...] = ()  # files of the host that options name; they are placed beside its own, too
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
        shared = [*_shared(self.shares, self.folder), *self.option_files]
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
        own_types = {
            "folder": str(self.folder),
            "npm": [package.spec for package in self.npm],
            "python_environment": self.python_environment and str(self.python_environment),
        }
        return msgspec.convert(asdict(self) | own_types, AgentFacts)


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
    id, keys = _entry(folder / paths.CONFIG, id)
    shares = _texts(keys, "shares")
    for file in shares:
        if not re.fullmatch(r"\w+/[\w.]+", file) or not (paths.agents_dir() / file).is_file():
            raise keys.error("shares", f"names {file!r}, which is not a file of a built-in agent")
    values = _valid(options or {}, keys, id)
    named = _option_files(keys, values, folder)
    beside = _shared(shares, folder) + list(named.values())
    npm = _npm(keys, values.get("version"))
    return Agent(
        name=id,
        spec=f"{base if is_built_in else folder}#{id}",
        folder=folder,
        identity=_with_command(identity(folder, beside) if beside else files, command),
        shares=shares,
        option_files=tuple(named.values()),
        arguments=_arguments(keys, values | {key: path.name for key, path in named.items()})
        if command is None
        else (command,),
        options=dict(options or {}),
        shell_command=command,
        **_environment(keys),
        **_programs(keys, folder, is_built_in),
        privileged=keys.get("privileged", bool, default=False),
        model=keys.get("model", str, default=None),
        npm=npm,
        scaffold=_scaffold(keys, npm),
        knowledge=_texts(keys, "knowledge"),
        needs_model=keys.get("needs_model", bool, default=False),
    )


def _shared(files: tuple[str, ...], folder: Path) -> list[Path]:
    """What a folder takes from built-in agents; a copy of one may already have it."""
    return [path for file in files if not (folder / (path := paths.agents_dir() / file).name).exists()]


def _entry(config: Path, id: str) -> tuple[str, Keys]:
    """An entry of config.yaml with its id; without one, the entry that is used when none is named."""
    entries = read_yaml(config)
    id = id or _only_id(config, entries)
    if not isinstance(entry := entries.get(id), dict):
        raise ConfigError(f"{config} has no agent {id!r}; it has {', '.join(_ids(entries)) or 'none'}")
    if not _ID.fullmatch(id):
        raise ConfigError(f"{config}: the id {id!r} must consist of letters, digits and ./@+-_, at most 100 of them")
    keys = Keys(config, entry, f"{id}.")
    keys.only(_KEYS)
    return id, keys


def _option_files(keys: Keys, values: Mapping[str, Any], folder: Path) -> dict[str, Path]:
    """The files of the host that options name. They are copied, because a sandbox does not show them."""
    files = {}
    for key in _texts(keys, "file_options"):
        if text := values.get(key):
            files[key] = path = Path(text)
            if not path.is_absolute() or not path.is_file():
                raise PrerequisiteError(f"the option {key} must be the absolute path of a file, not {text!r}")
            if (folder / path.name).exists() or path.name in map(os.path.basename, _texts(keys, "shares")):
                raise PrerequisiteError(f"{path} has the name of one of the agent's own files: rename it")
    return files


def _npm(keys: Keys, version: str | None) -> tuple[NpmPackage, ...]:
    """The packages of `npm`; with another version of the program, that package's hash is not known."""
    entry = keys.get("npm", dict, default=None)
    if entry is None:
        return ()
    locked = entry.get("version")
    if not isinstance(locked, str) or not isinstance(entry.get("packages"), dict) or len(entry) > 2:
        raise keys.error("npm", "must have `version`, in quotes, and `packages`")
    if version is not None and not re.fullmatch(r"[0-9A-Za-z][\w.-]*", version):
        raise PrerequisiteError(f"{version!r} is not a version of an npm package")
    return tuple(
        _npm_package(keys, str(name), str(platform), str(line), locked, version or locked)
        for name, platforms in entry["packages"].items()
        for platform, line in (platforms if isinstance(platforms, dict) else {"": ""}).items()
    )


def _npm_package(keys: Keys, name: str, platform: str, line: str, locked: str, version: str) -> NpmPackage:
    """A package for a platform; `line` has its version and its hash."""
    template, _, integrity = line.partition(" ")
    if not _NPM_NAME.fullmatch(name) or not platform or not _INTEGRITY.fullmatch(integrity):
        raise keys.error(f"npm.packages.{name}.{platform}", "must be a version and a hash, `VERSION sha512-…`")
    is_program = "{version}" in template
    return NpmPackage(
        name.replace("{platform}", platform),
        template.replace("{version}", version).replace("{platform}", platform),
        platform,
        None if is_program and version != locked else integrity,
        is_program,
    )


def _scaffold(keys: Keys, npm: tuple[NpmPackage, ...]) -> str | None:
    """As config.yaml names it, with the version of its program."""
    scaffold = keys.get("scaffold", str, default=None)
    versions = {package.version.partition("-")[0] for package in npm if package.is_program}
    return f"{scaffold} {versions.pop()}" if scaffold and len(versions) == 1 else scaffold


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
