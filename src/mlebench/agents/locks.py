"""The list of packages that an agent's venv gets: its requirements, or the lock beside them.

A lock has every package that the requirements lead to, with version and checksum, and no address.
"""

import hashlib
import json
import platform
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mlebench.agents.interpreters import interpreter_for, make_venv, run
from mlebench.agents.spec import Agent
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.files import write_whole

_PINNED = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w., -]*\])?\s*===?\s*[\w.!+-]+(\s*;[^#]*?)?(\s+--hash[= ]\S+)*")

_ADDRESS = re.compile(r"-|.*://|[^;]*@|\.{0,2}/")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_SOURCE = re.compile(r"^# from .*, sha256 ([0-9a-f]{64})$", re.MULTILINE)


def requirements_of(agent: Agent) -> Path:
    if agent.requirements is None:
        raise PrerequisiteError(
            f"the agent {agent.name} names no requirements, so there is nothing to install: "
            "name a file of them as `requirements` in its config.yaml"
        )
    return agent.folder / agent.requirements


def package_list(agent: Agent) -> Path:
    """The file that says what to install: the lock, if there is one, or the requirements."""
    lock = paths.agent_lock(requirements_of(agent))
    return lock if lock.is_file() else requirements_of(agent)


def required_names(agent: Agent) -> list[str]:
    """The packages that the requirements name, without those they lead to."""
    return [name[0] for line in _lines(requirements_of(agent)) if (name := _NAME.match(line))]


def lock_fault(agent: Agent) -> str | None:
    """What to do about a lock that was written from other requirements."""
    packages, requirements = package_list(agent), requirements_of(agent)
    source = _SOURCE.search(packages.read_text(encoding="utf-8")) if packages != requirements else None
    if source is None or source[1] == _sha256(requirements):
        return None
    return f"{requirements} has changed since {packages.name} was written: run `{install_command(agent)} --lock`"


def install_command(agent: Agent) -> str:
    return f"mlebench agents install {agent.spec.removesuffix(f'#{agent.folder.name}')}"


def require_versions(agent: Agent) -> None:
    """Every line must name one version: what is installed today must be what is installed next year."""
    packages = package_list(agent)
    for line in _lines(packages):
        if not _PINNED.fullmatch(line):
            raise PrerequisiteError(
                f"{packages}: {line!r} is not locked: each line must be NAME==VERSION; "
                f"`{install_command(agent)} --lock` finds the versions"
            )


def write_lock(agent: Agent, wheels: Path | None = None, python: str | None = None) -> Path:
    """Find versions for an agent's requirements and all they lead to, and write them beside the requirements."""
    requirements = requirements_of(agent)
    if agent.folder.parent == paths.agents_dir():
        raise PrerequisiteError(f"the packages of the agent {agent.name} are locked already: copy its folder first")
    for line in _lines(requirements):
        if _ADDRESS.match(line):
            raise PrerequisiteError(f"{requirements}: {line!r} cannot be locked: each line must be a name and versions")
    interpreter = interpreter_for(agent, python)
    with tempfile.TemporaryDirectory(prefix=paths.SCRATCH) as scratch:
        pip, report = make_venv(interpreter, Path(scratch) / "venv"), Path(scratch) / "report.json"
        options = ["--dry-run", "--ignore-installed", "--report", str(report), *pip_source(wheels)]
        run(
            [*pip, "install", "--quiet", *options, "--requirement", str(requirements)],
            f"cannot find versions for {requirements}",
        )
        packages = json.loads(report.read_bytes())["install"]
    head = (
        f"# Written by `mlebench agents install --lock` for Python {interpreter.version} on {platform.machine()}\n"
        f"# from {requirements.name}, sha256 {_sha256(requirements)}\n"
    )
    lock = paths.agent_lock(requirements)
    write_whole(lock, head + "".join(sorted(f"{_locked(package)}\n" for package in packages)))
    return lock


def pip_source(wheels: Path | None) -> list[str]:
    """Options of pip: where packages come from."""
    return ["--no-index", "--find-links", str(wheels.resolve())] if wheels else []


def _locked(package: dict[str, Any]) -> str:
    """A line of a lock."""
    name, version = package["metadata"]["name"], package["metadata"]["version"]
    sha256 = package["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
    if package["is_direct"] or sha256 is None:
        raise PrerequisiteError(f"{name} cannot be locked: it comes neither from an index nor from a folder of wheels")
    return f"{name}=={version} --hash=sha256:{sha256}"


def _lines(packages: Path) -> Iterator[str]:
    """The lines of a list of packages, without comments."""
    text = packages.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if line := re.sub(r"(^|\s)#.*", "", line).strip():
            yield line


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
