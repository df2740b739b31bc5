"""`--environment`: a conda environment or a venv of the host, which runs use as it is, read-only.

It is shown at its own path, because its programs name that path, and so is the Python that it was made from.
"""

import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlparse
from uuid import uuid4

from mlebench.agents import Agent
from mlebench.agents.interpreters import run
from mlebench.agents.locks import required_names
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.outcomes import FINISHED
from mlebench.records.group import GroupRecord, Limits
from mlebench.run.shared_folders import SHARED_FOLDERS, HostFolder, is_private
from mlebench.sandbox import Sandbox
from mlebench.sandbox.base import Bind, Task, interpreter_prefixes
from mlebench.sandbox.session import SupervisorClient

SYSTEM = Path("/usr")  # shown to every run
OURS = "mlebench"  # the name of our package, and of the reference's
IMPORTED_FROM = ("site-packages", "dist-packages")
LINKS = (".pth", ".egg-link")  # files there that lead to other folders; elsewhere, .pth files are models
LARGEST_LINK = 1 << 20  # bytes
TRIAL_SECONDS = 60.0
# Without `site`, which would run what .pth files hold. Then Debian's Python does not know that it is in a venv, and
# names other folders than the one that a venv has.
_ASK = """
import json, platform, site, sys
[prefix] = sys.argv[1:]
own = f"{prefix}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
folders = list(dict.fromkeys([own, *site.getsitepackages([prefix])]))
print(json.dumps([platform.python_version(), sys.base_prefix, folders]))
"""


@dataclass(frozen=True)
class PythonEnvironment:
    """An environment, as its files and its Python describe it."""

    prefix: Path
    base: Path  # where the Python that it was made from has its files; a conda environment has its own
    version: str
    is_conda: bool
    site_packages: tuple[Path, ...]  # folders that packages are imported from
    packages: tuple[str, ...] = field(default=(), compare=False)  # `name==version`; of conda, `name=version=build`

    @classmethod
    def read(cls, prefix: Path) -> Self:
        """Look at an environment. Raises PrerequisiteError if it is none, or its Python does not work."""
        prefix = Path(os.path.abspath(prefix.expanduser()))  # noqa: PTH100 `resolve` would follow links
        is_conda = (prefix / "conda-meta").is_dir()
        if not is_conda and not (prefix / "pyvenv.cfg").is_file():
            raise PrerequisiteError(f"{prefix} is no environment: it has neither conda-meta/ nor a pyvenv.cfg")
        python = prefix / "bin" / "python"
        if not python.exists():
            raise PrerequisiteError(f"{prefix} has no Python, or the one that it was made from is gone")
        version, base, folders = _ask(python, prefix)
        if _shows_system_packages(prefix):
            folders += _ask(python, base)[2]
        site_packages = tuple(folder for folder in map(Path, folders) if folder.is_dir())
        packages = tuple(sorted({*_python_packages(site_packages), *_conda_packages(prefix)}))
        return cls(prefix, prefix if is_conda else Path(base), version, is_conda, site_packages, packages)

    @property
    def sha256(self) -> str:
        """Equal for environments with the same Python and the same packages, wherever they are."""
        return hashlib.sha256("\n".join([self.version, *self.packages]).encode()).hexdigest()

    @property
    def folders(self) -> list[Path]:
        """What has to be shown beside the system's programs: the base first, which may have the prefix inside."""
        known = [path for folder in (self.base, self.prefix) for path in interpreter_prefixes(folder)]
        return [folder for folder in dict.fromkeys(known) if not folder.is_relative_to(SYSTEM)]

    def binds(self) -> list[Bind]:
        return [Bind(folder, str(folder)) for folder in self.folders]

    def variables(self) -> dict[str, str]:
        """What tells programs which environment is active."""
        if self.is_conda:
            return {"CONDA_PREFIX": str(self.prefix), "CONDA_DEFAULT_ENV": self.prefix.name, "CONDA_SHLVL": "1"}
        return {"VIRTUAL_ENV": str(self.prefix)}

    def hidden(self) -> list[Path]:
        """What the mlebench that is running has among the packages: like the package itself, it stays hidden."""
        names = (f"{OURS}-*.dist-info", f"{OURS}.egg-link", f"*_{OURS}*.pth", f"__editable__*{OURS}*")
        return [path for folder in self.site_packages for name in names for path in folder.glob(name)]

    def unseen(self) -> list[str]:
        """Packages in editable mode whose code is outside what is shown."""
        shown = [*map(paths.resolved, self.folders), SYSTEM]
        sources = {item.name: _source(item) for item in distributions(path=_texts(self.site_packages))}
        return sorted(
            name
            for name, source in sources.items()
            if source and name != OURS and not any(paths.resolved(source).is_relative_to(folder) for folder in shown)
        )

    def fault_for(self, agent: Agent) -> str | None:
        """Why the agent cannot use it instead of a venv of its own."""
        if agent.python and not f"{self.version}.".startswith(f"{agent.python}."):
            return f"the agent {agent.name} needs Python {agent.python}, and {self.prefix} has {self.version}"
        installed = {_plain(package.partition("==")[0]) for package in self.packages}
        required = required_names(agent) if agent.requirements else []
        if missing := [name for name in required if _plain(name) not in installed]:
            return f"{self.prefix} takes the place of the agent's venv, and lacks {', '.join(missing)}"
        return None


@dataclass(frozen=True)
class EnvironmentFolder(HostFolder):
    """The option `--environment`, and what records say about it."""

    def identity(self, folder: Path) -> str:
        return PythonEnvironment.read(folder).sha256

    def of(self, record: GroupRecord) -> PythonEnvironment | None:
        """The environment of a group's runs; None if they have none."""
        path = self.path(record)
        return None if path is None else PythonEnvironment.read(path)

    def fields(self, folder: Path | None) -> dict[str, Any]:
        """What a group's record says about the environment."""
        if folder is None:
            return {}
        environment = PythonEnvironment.read(folder)
        return {
            self.name: str(environment.prefix),
            f"{self.name}_sha256": environment.sha256,
            f"{self.name}_python": environment.version,
            f"{self.name}_packages": list(environment.packages),
        }

    def refuse(
        self, folder: Path, forbidden: Iterable[Path], sandbox: Sandbox | None = None, agent: Agent | None = None
    ) -> None:
        """Say why runs must not, or cannot, have this environment."""
        if sandbox and sandbox.runs_images:
            raise self._error(f"{sandbox.name} has the packages of its image: name one with --image, or use bubblewrap")
        try:
            environment = PythonEnvironment.read(folder)
        except PrerequisiteError as error:
            raise self._error(str(error)) from None
        if agent and (fault := environment.fault_for(agent)):
            raise self._error(fault)
        data_dirs = [paths.default_data_dir(twin=twin) for twin in (False, True)]
        for shown in environment.folders:
            if Path.home().is_relative_to(shown):
                raise self._error(f"{shown} holds the home folder {Path.home()}, which agents must not see")
            self._refuse_location(shown, (*forbidden, *data_dirs))
            self._require_readable(shown)
            for path, fault in _forbidden_below(shown):
                raise self._error(f"{path} {fault}: remove it, or name another environment")


ENVIRONMENT = EnvironmentFolder("environment")
HOST_FOLDERS: tuple[HostFolder, ...] = (*SHARED_FOLDERS, ENVIRONMENT)


def trial_fault(environment: PythonEnvironment, sandbox: Sandbox) -> str | None:
    """Why the environment's Python does not work in a sandbox; None if it does."""
    program = "import ctypes, ssl, subprocess, sys; print(sys.prefix)"
    with tempfile.TemporaryDirectory(prefix=paths.SCRATCH) as scratch:
        work = Path(scratch)
        for name in ("home", "tmp"):
            (work / name).mkdir()
        search = [f"{environment.prefix}/bin", *sandbox.search_path(None)]
        task = Task(
            uuid4().hex[:16],
            ("python", "-I", "-c", program),
            work,
            Limits(seconds=TRIAL_SECONDS),
            binds=tuple(environment.binds()),
            env={"PATH": ":".join(search), **environment.variables()},
            own_cpus=False,
            hidden=tuple(environment.hidden()),
        )
        session = SupervisorClient(task, sandbox.launch(task))
        while (outcome := session.poll()) is None:
            session.heartbeat()
            time.sleep(0.02)
        printed = (work / paths.RUN_LOG).read_text(encoding="utf-8", errors="replace").strip()
    if outcome.ended != FINISHED:
        return printed.splitlines()[-1] if printed else outcome.detail
    return None if printed == str(environment.prefix) else f"its Python has the prefix {printed}"


def _ask(python: Path, prefix: Path | str) -> tuple[str, str, list[str]]:
    """The version of an interpreter, its base, and where packages of a prefix are."""
    return json.loads(run([str(python), "-I", "-S", "-c", _ASK, str(prefix)], f"{python} does not work"))


def _shows_system_packages(prefix: Path) -> bool:
    """Whether a venv also imports the packages of the Python that it was made from."""
    try:
        text = (prefix / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return False
    return re.search(r"^\s*include-system-site-packages\s*=\s*true\s*$", text, re.MULTILINE | re.IGNORECASE) is not None


def _python_packages(site_packages: Iterable[Path]) -> Iterator[str]:
    """`name==version` of every Python package but the mlebench that is running, of which agents see nothing."""
    for item in distributions(path=_texts(site_packages)):
        name = item.metadata["Name"]
        if name and not (_plain(name) == OURS and not _has_other_copy(item)):
            yield f"{name}=={item.metadata['Version']}"


def _conda_packages(prefix: Path) -> Iterator[str]:
    """`name=version=build` of every package that conda installed."""
    for path in (prefix / "conda-meta").glob("*-*-*.json"):
        yield "=".join(path.stem.rsplit("-", 2))


def _source(item: Distribution) -> Path | None:
    """Where the code of a package in editable mode is."""
    try:
        facts = json.loads(item.read_text("direct_url.json") or "{}")
        is_editable, url = facts["dir_info"]["editable"], urlparse(facts["url"])
    except (ValueError, KeyError, TypeError):
        return None
    return Path(unquote(url.path)) if is_editable and url.scheme == "file" else None


def _forbidden_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """What an environment has that agents must not see, and what is wrong with each; links are not followed."""
    for parent, names, files in os.walk(folder):
        where = Path(parent)
        group = paths.GroupPaths(where)
        if {group.record.name, group.metadata.name} <= {*files}:
            yield where, "is a run group"
        if where.name == paths.PRIVATE and is_private(where):
            yield where, "is private data of a competition"
        if OURS in names and _is_other_copy(where):
            yield where / OURS, "is another copy of mlebench than the one that is running"
        links = [where / name for name in files if where.name in IMPORTED_FROM and name.endswith(LINKS)]
        leading = [link for link in links if any(map(_is_other_copy, _targets(link)))]
        is_ours = where.name.startswith(f"{OURS}-") and where.name.endswith(".dist-info")
        if is_ours and _has_other_copy(Distribution.at(where)):
            leading.append(where)
        for path in leading:
            yield path, "leads to another copy of mlebench than the one that is running"


def _has_other_copy(item: Distribution) -> bool:
    """Whether an installed mlebench is not the one that is running."""
    source = _source(item)
    folders = [source, source / "src"] if source else [Path(str(item.locate_file("")))]
    return any(map(_is_other_copy, folders))


def _is_other_copy(folder: Path) -> bool:
    """Whether a package `mlebench` in a folder is not the one that is running."""
    package = folder / OURS
    try:
        is_package = (package / "__init__.py").exists()
    except OSError:  # a line of text that is no path, say
        return False
    return is_package and paths.resolved(package) != paths.resolved(paths.module_dir())


def _targets(link: Path) -> Iterator[Path]:
    """The folders that a .pth file or an egg-link names."""
    try:
        text = link.read_text(encoding="utf-8", errors="replace") if link.stat().st_size <= LARGEST_LINK else ""
    except OSError:  # agents cannot read it, either
        return
    for line in text.splitlines():
        if line.strip() and not line.startswith(("import ", "import\t", "#")):
            yield link.parent / line.strip().replace("\0", "")


def _plain(name: str) -> str:
    """A package's name in the form that is compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _texts(folders: Iterable[Path]) -> list[str]:
    return [str(folder) for folder in folders]
