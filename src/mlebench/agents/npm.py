"""Programs from npm packages that agents run: installed once, before any run, and shared by all runs.

`npm` in config.yaml lists them, with versions and hashes. A package is unpacked as it is; packages that it depends on
are listed, too, or it needs none. `ready.json`, written last, says that a folder is complete.
"""

import base64
import hashlib
import os
import platform
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mlebench.agents.interpreters import run
from mlebench.agents.locks import install_command
from mlebench.agents.spec import Agent, NpmPackage
from mlebench.agents.venvs import venv_fault
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.leases import held
from mlebench.core.os_errors import reason_of
from mlebench.records import Record, write

_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}
_BLOCK = 1 << 20


class NpmRecord(Record, frozen=True, kw_only=True):
    """What is known about a complete folder of packages."""

    agent: str
    folder: str
    packages: dict[str, str]  # NAME@VERSION: its hash


def install_fault(agent: Agent, *, has_environment: bool = False) -> str | None:
    """What to do before the agent can run; None if all that it needs is installed. An environment replaces its venv."""
    return _npm_fault(agent) or (None if has_environment else venv_fault(agent))


def npm_dir(agent: Agent) -> Path | None:
    """The folder with the agent's programs, if it is ready; most agents have none."""
    return None if not agent.npm or _npm_fault(agent) else _folder(agent)


def installed() -> Iterator[Path]:
    """The folders that are complete."""
    root = paths.npm_dir()
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if paths.venv_record(folder).is_file():
            yield folder


def install(agent: Agent, packed: Path | None = None) -> tuple[Path, bool]:
    """Install the agent's packages, and say whether that was needed. With `packed`, they come from that folder only."""
    packages, folder = _packages(agent), _folder(agent)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with held(paths.venv_lock(folder)) as require_lock:
        if npm_dir(agent):
            return folder, False
        try:
            if folder.exists():  # an unfinished install left it
                shutil.rmtree(folder)
            with tempfile.TemporaryDirectory(prefix=paths.SCRATCH, dir=folder.parent) as scratch:
                hashes = {package.spec: _install(package, folder, packed, Path(scratch)) for package in packages}
        except BaseException as error:
            require_lock()
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError):
                raise PrerequisiteError(f"cannot install {agent.name} in {folder}: {reason_of(error)}") from error
            raise
        for parent, _, _ in os.walk(folder):
            os.chmod(parent, 0o755)  # noqa: S103 sandboxes run as other users
        require_lock()
        record = NpmRecord(agent=agent.name, folder=str(agent.folder), packages=hashes)
        write(paths.venv_record(folder), record)
    return folder, True


def this_platform() -> str:
    """As npm's packages are named: `linux-x64`."""
    machine = platform.machine().lower()
    return f"{sys.platform}-{_MACHINES.get(machine, machine)}"


def _npm_fault(agent: Agent) -> str | None:
    if not agent.npm or paths.venv_record(_folder(agent)).is_file():
        return None
    version = agent.options.get("version")
    return f"not installed: run `{install_command(agent)}{f' --version {version}' if version else ''}`"


def _packages(agent: Agent) -> list[NpmPackage]:
    own = this_platform()
    packages = [package for package in agent.npm if package.platform in (own, "any")]
    if not any(package.is_program for package in packages):
        raise PrerequisiteError(f"the agent {agent.name} has no program for {own}")
    return packages


def _folder(agent: Agent) -> Path:
    wanted = "".join(f"{package}\n" for package in agent.npm)
    return paths.npm_dir() / f"{agent.folder.name}-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"


def _install(package: NpmPackage, folder: Path, packed: Path | None, scratch: Path) -> str:
    """Unpack a package at its name in the folder; return its hash."""
    file = _packed_name(package)
    if packed is None:
        _download(package, scratch)
    elif not (packed / file).is_file():
        raise PrerequisiteError(f"{packed} has no {file}, as `npm pack {package.spec}` makes it")
    archive = (packed or scratch) / file
    integrity = _integrity(archive)
    if package.integrity not in (None, integrity):
        raise PrerequisiteError(f"{file} is not the {package.spec} that was locked: its hash is {integrity}")
    target = folder / package.name
    target.mkdir(parents=True)
    _unpack(archive, target)
    return integrity


def _packed_name(package: NpmPackage) -> str:
    """The file that `npm pack` makes."""
    return f"{package.name.removeprefix('@').replace('/', '-')}-{package.version}.tgz"


def _download(package: NpmPackage, target: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise PrerequisiteError(
            "there is no npm to download with: install it, or name a folder of packed files with --from"
        )
    run([npm, "pack", package.spec, "--silent", "--pack-destination", str(target)], f"cannot download {package.spec}")


def _integrity(archive: Path) -> str:
    """As npm writes it."""
    with archive.open("rb") as file:
        return f"sha512-{base64.b64encode(hashlib.file_digest(file, 'sha512').digest()).decode()}"


def _unpack(archive: Path, target: Path) -> None:
    """Unpack without the folder at the top, readable for the users that sandboxes run as."""
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                member.name = member.name.partition("/")[2]
                if member.name and (member.isfile() or member.isdir()):
                    member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
                    tar.extract(member, target, filter="data")
    except (tarfile.TarError, EOFError) as error:
        raise PrerequisiteError(f"{archive} cannot be unpacked: {error}") from error
