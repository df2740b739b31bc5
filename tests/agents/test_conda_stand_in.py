"""The stand-in for conda, in a plain bash, in a folder that takes the place of /opt/conda."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mlebench.agents.folders import environment_dir

ENV = "envs/agent"


@pytest.fixture
def opt(tmp_path: Path) -> Path:
    """As in the image: with a venv `agent`, here one whose python says where it was found."""
    opt = tmp_path / "opt conda"
    shutil.copytree(environment_dir() / "conda", opt)
    program = opt / ENV / "bin/python"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "python of agent: $*"\n')
    program.chmod(0o755)
    return opt


def bash(opt: Path, script: str, code: int = 0, env: Mapping[str, str] | None = None) -> str:
    """What a script prints, including stderr. `conda` is on its path, and an error ends the script."""
    variables = {"PATH": f"/usr/bin:/bin:{opt}/bin", **(env or {})}
    done = subprocess.run(
        ["bash", "-c", f"set -eu\n{script}"],
        env=variables,
        cwd=opt,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


@pytest.mark.parametrize(
    "activate",
    [
        'eval "$(conda shell.bash hook)"; conda activate agent',
        'eval "$(bin/conda shell.bash hook)"; conda activate agent',
        "source bin/activate agent",
    ],
)
def test_after_activation_python_is_the_venvs(opt: Path, activate: str) -> None:
    printed = bash(opt, f'{activate}; python -c x; echo "$CONDA_DEFAULT_ENV $CONDA_PREFIX"; conda clean -afy')
    assert printed == f"python of agent: -c x\nagent {opt}/{ENV}\n"


def test_a_venv_that_is_active_already_stays_first(opt: Path, tmp_path: Path) -> None:
    program = tmp_path / "venv/bin/python"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho python of the venv\n")
    program.chmod(0o755)
    env = {"PATH": f"{tmp_path}/venv/bin:/usr/bin:/bin:{opt}/bin", "VIRTUAL_ENV": f"{tmp_path}/venv"}
    assert bash(opt, "conda run -n agent python", env=env) == "python of the venv\n"
    assert bash(opt, 'source bin/activate agent; echo "$PATH"', env=env) == env["PATH"] + "\n"


def test_without_a_venv_both_names_mean_the_systems_python(opt: Path, tmp_path: Path) -> None:
    shutil.rmtree(opt / "envs")
    system = tmp_path / "system"
    system.mkdir()
    for name in ("bash", "dirname", "readlink", "cat", "sh"):
        (system / name).symlink_to(str(shutil.which(name)))
    (system / "python3").write_text('#!/bin/sh\necho "python3 of the system: $*"\n')
    (system / "python3").chmod(0o755)
    printed = bash(opt, "source bin/activate; python -c x; echo $CONDA_PREFIX", env={"PATH": f"{system}:{opt}/bin"})
    assert printed == "python3 of the system: -c x\n/usr\n"


def test_run_passes_arguments_and_the_exit_code_on(opt: Path) -> None:
    run = "bin/conda run --no-capture-output -n agent"
    assert bash(opt, f"{run} printf '%s|' 'a b' -n '' '*'") == "a b|-n||*|"
    assert bash(opt, f"{run} sh -c 'exit 7'", code=7) == ""
    assert bash(opt, "bin/conda run --name=agent --cwd / pwd") == "/\n"
    assert bash(opt, "bin/conda run python --version") == "python of agent: --version\n"


@pytest.mark.parametrize("command", ["install -y -n agent -c conda-forge nodejs=18", "create -n x", "env create", ""])
def test_what_it_cannot_do_fails_and_says_what_to_do(opt: Path, command: str) -> None:
    printed = bash(opt, f"conda {command}", code=1)
    assert "there is no conda here" in printed
    assert "pip install NAME" in printed
    assert "apt-get install NAME" in printed
    hooked = bash(opt, f'eval "$(conda shell.bash hook)"; conda {command} || echo "failed with $?"')
    assert hooked == printed + "failed with 1\n"


def test_there_is_one_environment(opt: Path) -> None:
    assert "no environment `other`" in bash(opt, "conda run -n other true", code=1)
    assert "no environment `other`" in bash(opt, 'eval "$(conda shell.bash hook)"; conda activate other', code=1)
    assert "shell.bash hook" in bash(opt, "conda activate agent", code=1)


def test_its_programs_are_executable() -> None:
    assert all(os.access(environment_dir() / "conda/bin" / name, os.X_OK) for name in ("conda", "python"))
