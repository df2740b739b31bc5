"""A virtual environment for each agent that names its requirements, made before any run starts.

It is outside mlebench's own environment, named after the agent's folder and a hash of its requirements.
A venv cannot be moved, so it is made where it will stay; `ready.json`, written last, says that it is complete.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mlebench import paths
from mlebench.agents.spec import Agent
from mlebench.errors import PrerequisiteError
from mlebench.faults import reason_of
from mlebench.lease import held
from mlebench.records import Record

_PINNED = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w., -]*\])?\s*===?\s*[\w.!+-]+(\s*;[^#]*?)?(\s+--hash[= ]\S+)*")
_ASK_PYTHON = """
import json, os, sys
own = getattr(sys, "_base_executable", None) or sys.executable
print(json.dumps([os.path.realpath(own), os.path.realpath(sys.base_prefix), "%d.%d" % sys.version_info[:2]]))
"""


@dataclass(frozen=True, kw_only=True)
class VenvRecord(Record):
    """What is known about a complete venv."""

    agent: str
    folder: str
    python: str  # the interpreter it was made from
    prefix: str  # where that interpreter's own files are
    version: str
    packages: list[str]
    complaints: list[str]  # what pip finds missing; some agents leave heavy packages out on purpose


@dataclass(frozen=True)
class Interpreter:
    executable: str
    prefix: str
    version: str


def venv_of(agent: Agent) -> Path | None:
    """The agent's venv, if it is ready; an agent without requirements has none."""
    if agent.requirements is None:
        return None
    venv = _place(agent)
    return venv if paths.venv_record(venv).is_file() else None


def venv_fault(agent: Agent) -> str | None:
    """What to do before the agent can run; None if its venv is ready, or it needs none."""
    if agent.requirements is None or venv_of(agent):
        return None
    return f"not installed: run `mlebench agents install {agent.spec.removesuffix(f'#{agent.folder.name}')}`"


def base_python(venv: Path) -> Path:
    """Where the Python that a venv was made from keeps its files: the venv does not work without them."""
    return Path(record_of(venv).prefix)


def record_of(venv: Path) -> VenvRecord:
    return VenvRecord.read(paths.venv_record(venv))


def installed() -> Iterator[tuple[Path, VenvRecord]]:
    """The venvs that are ready."""
    root = paths.venvs_dir()
    for venv in sorted(root.iterdir()) if root.is_dir() else ():
        if paths.venv_record(venv).is_file():
            yield venv, record_of(venv)


def install(agent: Agent, wheels: Path | None = None, python: str | None = None) -> tuple[Path, bool]:
    """Make the agent's venv, and say whether that was needed. With `wheels`, nothing comes from a network."""
    if agent.requirements is None:
        raise PrerequisiteError(f"the agent {agent.name} names no requirements, so there is nothing to install")
    _require_pins(agent.folder / agent.requirements)
    venv = _place(agent)
    with _alone(venv) as require_lock:
        if venv_of(agent):
            _require_same_python(venv, python)
            return venv, False
        interpreter = _interpreter(agent, python)
        _remove_unfinished(venv)
        try:
            record = _make(agent, venv, interpreter, wheels)
        except BaseException:
            require_lock()
            shutil.rmtree(venv, ignore_errors=True)
            raise
        require_lock()
        record.write(paths.venv_record(venv))
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


def _place(agent: Agent) -> Path:
    wanted = hashlib.sha256((agent.python or "").encode() + b"\0")
    wanted.update((agent.folder / str(agent.requirements)).read_bytes())
    return paths.venvs_dir() / f"{agent.folder.name}-{wanted.hexdigest()[:12]}"


def _require_pins(requirements: Path) -> None:
    """Every line must name one version: what is installed today must be what is installed next year."""
    text = requirements.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        if line and not _PINNED.fullmatch(line):
            raise PrerequisiteError(f"{requirements}: {line!r} is not locked: each line must be NAME==VERSION")


@contextmanager
def _alone(venv: Path) -> Iterator[Callable[[], None]]:
    """Wait until no other process is making this venv."""
    venv.parent.mkdir(parents=True, exist_ok=True)
    if paths.venv_lock(venv).is_file():  # left by an earlier version
        paths.venv_lock(venv).unlink()
    with held(paths.venv_lock(venv)) as require_lock:
        yield require_lock


def _interpreter(agent: Agent, python: str | None) -> Interpreter:
    """The requested one, or one of the version the agent wants, or our own."""
    version = agent.python
    if python is None and version in (None, "{}.{}".format(*sys.version_info)):
        python = sys.executable
    found = shutil.which(python or f"python{version}")
    if found is None:
        wanted = f"a Python {version}" if version else "another"
        raise PrerequisiteError(f"there is no {python or f'python{version}'}: name {wanted} with --python")
    interpreter = _ask(found)
    if version is not None and interpreter.version != version:
        raise PrerequisiteError(
            f"the agent {agent.name} needs Python {version}, and {found} is {interpreter.version}: use --python"
        )
    return interpreter


def _ask(python: str) -> Interpreter:
    """What an interpreter really is, behind links, shims and venvs."""
    return Interpreter(*json.loads(_run([python, "-I", "-c", _ASK_PYTHON], f"{python} does not work as a Python")))


def _require_same_python(venv: Path, python: str | None) -> None:
    made_from = record_of(venv).python
    if python is not None and _ask(shutil.which(python) or python).executable != made_from:
        raise PrerequisiteError(f"{venv} was made with {made_from}: remove that folder to make it with another Python")


def _make(agent: Agent, venv: Path, interpreter: Interpreter, wheels: Path | None) -> VenvRecord:
    _run([interpreter.executable, "-m", "venv", str(venv)], f"cannot make a venv with {interpreter.executable}")
    pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    # Only named packages are installed: an unlocked requirement cannot slip in.
    offline = ["--no-index", "--find-links", str(wheels.resolve())] if wheels else []
    requirements = str(agent.folder / str(agent.requirements))
    _run(
        [*pip, "install", "--quiet", "--no-deps", *offline, "--requirement", requirements],
        f"cannot install {requirements}",
    )
    check = _start([*pip, "check"])
    packages = _run([*pip, "list", "--format", "freeze"], "cannot list what was installed")
    return VenvRecord(
        agent=agent.name,
        folder=str(agent.folder),
        python=interpreter.executable,
        prefix=interpreter.prefix,
        version=interpreter.version,
        packages=packages.split(),
        complaints=check.stdout.splitlines() if check.returncode else [],
    )


def _run(command: Sequence[str], fault: str) -> str:
    try:
        done = _start(command)
    except OSError as error:
        raise PrerequisiteError(f"{fault}: {(error.strerror or '').lower()}") from None
    if done.returncode:
        lines = [line.strip() for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
        raise PrerequisiteError(f"{fault}: {' '.join(errors) or f'exit code {done.returncode}'}")
    return done.stdout


def _start(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=_clean_environment(), capture_output=True, text=True, check=False)  # noqa: S603


def _clean_environment() -> dict[str, str]:
    """Ours, without what would mix our own packages into the venv or put its packages elsewhere."""
    outside = (
        "PYTHONPATH",
        "PYTHONHOME",
        "VIRTUAL_ENV",
        "PIP_TARGET",
        "PIP_PREFIX",
        "PIP_USER",
        "PIP_REQUIRE_VIRTUALENV",
    )
    return {name: value for name, value in os.environ.items() if name not in outside}
