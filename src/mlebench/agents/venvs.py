"""A virtual environment for each agent that names its requirements, made before any run starts.

It is outside mlebench's own environment, named after the agent's folder and a hash of its list of packages.
A venv cannot be moved, so it is made where it will stay; `ready.json`, written last, says that it is complete.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import field

from mlebench.agents.interpreters import Interpreter, ask_interpreter, interpreter_for, make_venv, run, start
from mlebench.agents.locks import (
    install_command,
    lock_fault,
    package_list,
    pip_source,
    require_versions,
    required_names,
)
from mlebench.agents.spec import Agent
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.core.leases import held
from mlebench.core.os_errors import reason_of
from mlebench.records import Record, read, write

_IMPORT_CHECK = Path(__file__).with_name("import_check.py")


class VenvRecord(Record, frozen=True, kw_only=True):
    """What is known about a complete venv."""

    agent: str
    folder: str
    python: str  # the interpreter it was made from
    prefix: str  # where that interpreter's own files are
    version: str
    packages: list[str]
    complaints: list[str]  # what pip finds missing; some agents leave heavy packages out on purpose
    unimportable: list[str] = field(default_factory=list)  # required packages that cannot be imported, and why


def venv_of(agent: Agent) -> Path | None:
    """The agent's venv, if it is ready; an agent without requirements has none."""
    return None if agent.requirements is None or venv_fault(agent) else _venv_folder(agent)


def venv_fault(agent: Agent) -> str | None:
    """What to do before the agent can run; None if its venv is ready, or it needs none."""
    if agent.requirements is None:
        return None
    if fault := lock_fault(agent):
        return f"not installed: {fault}"
    venv, command = _venv_folder(agent), install_command(agent)
    if not paths.venv_record(venv).is_file():
        return f"not installed: run `{command}`"
    fault = installed_fault(venv)
    return fault and f"not ready: {fault}: change its requirements or its Python, then run `{command}`"


def installed_fault(venv: Path) -> str | None:
    """Why a venv that was installed does not work."""
    if not (venv / "bin" / "python").exists():
        return f"the Python that {venv} was made with is gone"
    return next(iter(record_of(venv).unimportable), None)


def base_python(venv: Path) -> Path:
    """Where the Python that a venv was made from keeps its files: the venv does not work without them."""
    return Path(record_of(venv).prefix)


def record_of(venv: Path) -> VenvRecord:
    return read(paths.venv_record(venv), VenvRecord)


def installed() -> Iterator[tuple[Path, VenvRecord]]:
    """The venvs that were installed; `installed_fault` says whether they work."""
    root = paths.venvs_dir()
    for venv in sorted(root.iterdir()) if root.is_dir() else ():
        if paths.venv_record(venv).is_file():
            yield venv, record_of(venv)


def install(agent: Agent, wheels: Path | None = None, python: str | None = None) -> tuple[Path, bool]:
    """Make the agent's venv, and say whether that was needed. With `wheels`, nothing comes from a network."""
    require_versions(agent)
    if fault := lock_fault(agent):
        raise PrerequisiteError(fault)
    venv = _venv_folder(agent)
    with _alone(venv) as require_lock:
        if venv_of(agent):
            _require_same_python(venv, python)
            return venv, False
        interpreter = interpreter_for(agent, python)
        _remove_unfinished(venv)
        try:
            record = _make(agent, venv, interpreter, wheels)
        except BaseException:
            require_lock()
            shutil.rmtree(venv, ignore_errors=True)
            raise
        require_lock()
        write(paths.venv_record(venv), record)
    return venv, True


def _remove_unfinished(venv: Path) -> None:
    """Remove what an unfinished install left, all of it: a file that stays would count as part of the new venv."""
    try:
        if venv.exists():
            shutil.rmtree(venv)
    except OSError as error:
        raise PrerequisiteError(
            f"{venv}, left by an unfinished install, cannot be removed: {reason_of(error)}"
        ) from error


def _venv_folder(agent: Agent) -> Path:
    wanted = hashlib.sha256((agent.python or "").encode() + b"\0")
    wanted.update(package_list(agent).read_bytes())
    return paths.venvs_dir() / f"{agent.folder.name}-{wanted.hexdigest()[:12]}"


@contextmanager
def _alone(venv: Path) -> Iterator[Callable[[], None]]:
    """Wait until no other process is making this venv."""
    venv.parent.mkdir(parents=True, exist_ok=True)
    with held(paths.venv_lock(venv)) as require_lock:
        yield require_lock


def _require_same_python(venv: Path, python: str | None) -> None:
    made_from = record_of(venv).python
    if python is not None and ask_interpreter(shutil.which(python) or python).executable != made_from:
        raise PrerequisiteError(f"{venv} was made with {made_from}: remove that folder to make it with another Python")


def _make(agent: Agent, venv: Path, interpreter: Interpreter, wheels: Path | None) -> VenvRecord:
    pip = make_venv(interpreter, venv)
    # Only named packages are installed: an unlocked requirement cannot slip in.
    packages = str(package_list(agent))
    run(
        [*pip, "install", "--quiet", "--no-deps", *pip_source(wheels), "--requirement", packages],
        f"cannot install {packages}",
    )
    check = start([*pip, "check"])
    listed = run([*pip, "list", "--format", "freeze"], "cannot list what was installed")
    return VenvRecord(
        agent=agent.name,
        folder=str(agent.folder),
        python=interpreter.executable,
        prefix=interpreter.prefix,
        version=interpreter.version,
        packages=listed.split(),
        complaints=check.stdout.splitlines() if check.returncode else [],
        unimportable=_unimportable(agent, venv),
    )


def _unimportable(agent: Agent, venv: Path) -> list[str]:
    done = start([str(venv / "bin" / "python"), "-I", str(_IMPORT_CHECK), *required_names(agent)])
    if done.returncode:
        return [f"importing its packages ends Python with exit code {done.returncode}"]
    return done.stdout.splitlines()
