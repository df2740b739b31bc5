"""Finds the Python for an agent's venv, and runs programs of other installations."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlebench.agents.spec import Agent
from mlebench.core.errors import PrerequisiteError

_ASK_PYTHON = """
import json, os, sys
own = getattr(sys, "_base_executable", None) or sys.executable
print(json.dumps([os.path.realpath(own), os.path.realpath(sys.base_prefix), "%d.%d" % sys.version_info[:2]]))
"""


@dataclass(frozen=True)
class Interpreter:
    executable: str
    prefix: str
    version: str


def interpreter_for(agent: Agent, python: str | None) -> Interpreter:
    """The requested one, or one of the version the agent wants, or our own."""
    version = agent.python
    if python is None and version in (None, "{}.{}".format(*sys.version_info)):
        python = sys.executable
    if python is None:
        return _first_on_path(f"python{version}", str(version))
    path = shutil.which(python)
    if path is None:
        wanted = f"a Python {version}" if version else "another"
        raise PrerequisiteError(f"there is no {python}: name {wanted} with --python")
    interpreter = ask_interpreter(path)
    if version is not None and interpreter.version != version:
        raise PrerequisiteError(
            f"the agent {agent.name} needs Python {version}, and {path} is {interpreter.version}: use --python"
        )
    return interpreter


def _first_on_path(name: str, version: str) -> Interpreter:
    """The first that works and is of this version; version managers leave shims on the path that may fail."""
    faults = []
    for folder in os.get_exec_path():
        if program := shutil.which(name, path=folder):
            try:
                interpreter = ask_interpreter(program)
            except PrerequisiteError as error:
                faults.append(str(error))
                continue
            if interpreter.version == version:
                return interpreter
            faults.append(f"{program} is {interpreter.version}")
    which = f"no {name} that works ({'; '.join(faults)})" if faults else f"no {name}"
    raise PrerequisiteError(f"there is {which}: name a Python {version} with --python")


def ask_interpreter(python: str) -> Interpreter:
    """What an interpreter really is, behind links, shims and venvs."""
    return Interpreter(*json.loads(run([python, "-I", "-c", _ASK_PYTHON], f"{python} does not work as a Python")))


def make_venv(interpreter: Interpreter, venv: Path) -> list[str]:
    """Make an empty venv; the beginning of its pip's commands."""
    run([interpreter.executable, "-m", "venv", str(venv)], f"cannot make a venv with {interpreter.executable}")
    return [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]


def run(command: Sequence[str], fault: str) -> str:
    """What a program prints; PrerequisiteError, beginning with `fault`, if it cannot be run or fails."""
    try:
        done = start(command)
    except OSError as error:
        raise PrerequisiteError(f"{fault}: {(error.strerror or '').lower()}") from None
    if done.returncode:
        lines = [line.strip() for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
        raise PrerequisiteError(f"{fault}: {' '.join(errors) or f'exit code {done.returncode}'}")
    return done.stdout


def start(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
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
