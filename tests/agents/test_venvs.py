"""Venvs of agents: made once, offline, from locked versions, outside our own environment."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.wheels import make_wheel

from mlebench.agents import base_python, built_in, load_agent, venv_fault, venv_of, venvs
from mlebench.agents.interpreters import interpreter_for
from mlebench.agents.locks import require_versions, write_lock
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with one wheel: `tinytool` 1.0, which wants `absent`."""
    folder = tmp_path / "wheels"
    make_wheel(folder, "tinytool", "1.0", "ANSWER = 42\ndef main():\n    print(ANSWER)\n", needs=["absent"])
    return folder


def agent_folder(tmp_path: Path, requirements: str, entry: str = "") -> Path:
    folder = tmp_path / "needy"
    folder.mkdir(exist_ok=True)
    (folder / "start.sh").write_text("tinytool\n")
    (folder / "requirements.txt").write_text(requirements)
    (folder / "config.yaml").write_text(
        f"needy: {{start: needy/start.sh, requirements: needy/requirements.txt{entry}}}"
    )
    return folder


def mlebench(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mlebench", "agents", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_venv_is_made_once_offline_and_apart_from_ours(tmp_path: Path, wheels: Path) -> None:
    folder = agent_folder(tmp_path, "# locked\ntinytool==1.0  # by hand\n")
    agent = load_agent(str(folder))
    assert venv_of(agent) is None
    assert venv_fault(agent)
    assert f"not installed: run `mlebench agents install {folder}`" in mlebench("show", folder).stdout

    done = mlebench("install", folder, "--wheels", wheels)
    assert done.returncode == 0, done.stderr
    venv = venv_of(agent)
    assert venv is not None
    assert venv_fault(agent) is None
    assert done.stdout == f"{venv}\n"
    assert "needs absent, which is not installed" in done.stderr.replace("requires", "needs"), (
        "it says what was left out"
    )
    assert venv.parent == paths.venvs_dir()
    run = subprocess.run([venv / "bin/tinytool"], capture_output=True, text=True, check=True, env={})
    assert run.stdout == "42\n"
    foreign = subprocess.run([venv / "bin/python", "-c", "import click"], capture_output=True, check=False)
    assert foreign.returncode != 0, "nothing of ours is seen in it"
    ask = [venv / "bin/python", "-c", "import sys; print(sys.base_prefix)"]
    asked = subprocess.run(ask, capture_output=True, text=True, check=True)
    assert base_python(venv) == Path(asked.stdout.strip()).resolve()
    assert (venv / "bin/python").resolve().is_relative_to(base_python(venv))

    before = paths.venv_record(venv).stat().st_mtime_ns
    done = mlebench("install", folder)  # no network is used
    assert (done.returncode, done.stdout) == (0, f"{venv}\n"), done.stderr
    assert paths.venv_record(venv).stat().st_mtime_ns == before
    rows = {row["name"]: row for row in json.loads(mlebench("--json").stdout)}
    assert rows[f"{folder}#needy"]["state"] == f"venv {venv}"
    assert "ready, venv" in mlebench("show", folder).stdout

    agent_folder(tmp_path, "tinytool==1.0\n")
    assert venv_of(load_agent(str(folder))) is None, "other requirements, another venv"


def test_nothing_of_an_unfinished_venv_stays(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = load_agent(str(agent_folder(tmp_path, "tinytool==1.0\n")))
    half = venvs._venv_folder(agent)
    half.mkdir(parents=True)

    def refuse(path: Path, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("mlebench.agents.venvs.shutil.rmtree", refuse)
    with pytest.raises(PrerequisiteError, match="left by an unfinished install, cannot be removed"):
        venvs.install(agent, wheels)
    assert venv_of(agent) is None


def test_an_unfinished_venv_is_remade_and_a_failed_one_leaves_nothing(tmp_path: Path, wheels: Path) -> None:
    agent = load_agent(str(agent_folder(tmp_path, "tinytool==2.0\n")))
    with pytest.raises(PrerequisiteError, match=r"cannot install .*requirements\.txt: .*tinytool==2\.0"):
        venvs.install(agent, wheels)
    assert not [path for path in paths.venvs_dir().iterdir() if path.suffix != ".lock"]

    agent = load_agent(str(agent_folder(tmp_path, "tinytool==1.0\n")))
    half = venvs._venv_folder(agent)
    (half / "lib").mkdir(parents=True)
    (half / "lib/left.py").write_text("")
    assert venv_of(agent) is None
    venv, is_new = venvs.install(agent, wheels)
    assert (venv, is_new) == (half, True)
    assert not (venv / "lib/left.py").exists()


@pytest.mark.parametrize(
    "line",
    ["tinytool", "tinytool>=1.0", "tinytool==1.*", "tinytool~=1.0", "tinytool==1.0,<2", "-r other.txt", "--pre",
     "./tinytool", "tinytool @ file:///tmp/x", "-e .", "tinytool==1.0 other", "--index-url=x"],
)  # fmt: skip
def test_what_is_not_locked_is_refused(tmp_path: Path, line: str) -> None:
    agent = load_agent(str(agent_folder(tmp_path, f"other==1.0\n{line}\n")))
    with pytest.raises(PrerequisiteError, match="is not locked: each line must be NAME==VERSION"):
        venvs.install(agent, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "a==1.0",
        "a[b,c]==1.0.post1+cu118",
        "A.b-c==2024.1 ; python_version < '3.12'",
        "a==1 \\\n  --hash=sha256:00 \\\n  --hash=sha256:11",
    ],
)
def test_locked_lines_of_every_form_are_accepted(tmp_path: Path, text: str) -> None:
    require_versions(load_agent(str(agent_folder(tmp_path, f"# comment\n\n{text}\n"))))


def test_the_python_must_be_the_one_the_agent_wants(tmp_path: Path, wheels: Path) -> None:
    folder = agent_folder(tmp_path, "tinytool==1.0\n", ', python: "3.99"')
    agent = load_agent(str(folder))
    with pytest.raises(PrerequisiteError, match=r"there is no python3\.99: name a Python 3\.99 with --python"):
        venvs.install(agent, wheels)
    with pytest.raises(PrerequisiteError, match=r"needs Python 3\.99, and .* is 3\.\d+: use --python"):
        venvs.install(agent, wheels, sys.executable)
    with pytest.raises(PrerequisiteError, match="does not work as a Python"):
        venvs.install(agent, wheels, "/bin/false")


def test_a_broken_shim_is_passed_over(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version manager puts one on the path for every Python that any of its versions has."""
    version = "{}.{}".format(*sys.version_info)
    agent = load_agent(str(agent_folder(tmp_path, "tinytool==1.0\n", f', python: "{version}"')))
    programs = {
        "shims": "echo 'command not found; it exists in these versions' >&2; exit 127",
        "other": """echo '["/bin/other", "/", "3.1"]'""",
        "good": f'exec "{sys.executable}" "$@"',
    }
    for name, command in programs.items():
        (tmp_path / name).mkdir()
        program = tmp_path / name / f"python{version}"
        program.write_text(f"#!/bin/sh\n{command}\n")
        program.chmod(0o755)
    monkeypatch.setattr("mlebench.agents.interpreters.sys.version_info", (3, 1))  # ours is another
    monkeypatch.setenv("PATH", os.pathsep.join(str(tmp_path / name) for name in programs))
    assert interpreter_for(agent, None).version == version
    monkeypatch.setenv("PATH", os.pathsep.join(str(tmp_path / name) for name in ("shims", "other")))
    with pytest.raises(
        PrerequisiteError, match=r"no python\S+ that works \(.*it exists in these versions; .* is 3\.1\)"
    ):
        interpreter_for(agent, None)


def test_a_lock_has_all_that_is_needed_and_only_that_is_installed(tmp_path: Path, wheels: Path) -> None:
    make_wheel(wheels, "absent", "0.9", "")
    folder = agent_folder(tmp_path, "tinytool>=0.5\n")
    done = mlebench("install", folder, "--wheels", wheels)
    assert done.returncode == 1
    assert f"`mlebench agents install {folder} --lock` finds the versions" in done.stderr

    done = mlebench("install", folder, "--wheels", wheels, "--lock")
    assert done.returncode == 0, done.stderr
    assert "pip check" not in done.stderr
    lock = folder / "requirements.lock"
    lines = [line for line in lock.read_text().splitlines() if not line.startswith("#")]
    hashes = {path.name.split("-")[0]: hashlib.sha256(path.read_bytes()).hexdigest() for path in wheels.iterdir()}
    assert lines == [
        f"absent==0.9 --hash=sha256:{hashes['absent']}",
        f"tinytool==1.0 --hash=sha256:{hashes['tinytool']}",
    ]
    assert "://" not in lock.read_text(), "no address of a registry"
    agent = load_agent(str(folder))
    first = venv_of(agent)
    assert first is not None
    assert {"absent==0.9", "tinytool==1.0"} <= {*venvs.record_of(first).packages}

    make_wheel(wheels, "tinytool", "1.1", "")
    assert venvs.install(agent, wheels) == (first, False), "newer versions do not matter"
    shutil.rmtree(first)
    (wheels / "tinytool-1.0-py3-none-any.whl").unlink()
    make_wheel(wheels, "tinytool", "1.0", "# something else")
    with pytest.raises(PrerequisiteError, match=r"cannot install .*requirements\.lock"):
        venvs.install(agent, wheels)

    (folder / "requirements.txt").write_text("tinytool>=1.1\n")
    changed = load_agent(str(folder))
    assert venv_of(changed) is None
    for fault in (venv_fault(changed), mlebench("install", folder, "--wheels", wheels).stderr):
        assert "requirements.txt has changed since requirements.lock was written" in str(fault)


@pytest.mark.parametrize(
    "line", ["-r other.txt", "--index-url https://host/", "tinytool @ file:///tmp/x", "./tinytool"]
)
def test_what_has_an_address_cannot_be_locked(tmp_path: Path, line: str) -> None:
    agent = load_agent(str(agent_folder(tmp_path, f"{line}\n")))
    with pytest.raises(PrerequisiteError, match="cannot be locked: each line must be a name and versions"):
        write_lock(agent, tmp_path)


def test_the_lists_of_built_in_agents_stay_as_they_are() -> None:
    with pytest.raises(PrerequisiteError, match="are locked already: copy its folder first"):
        write_lock(load_agent("baseline"))


def test_an_agent_is_ready_only_if_what_it_requires_can_be_imported(tmp_path: Path, wheels: Path) -> None:
    make_wheel(wheels, "broken", "1.0", "print('hello')\nimport absent_module\n")
    make_wheel(wheels, "leaving", "1.0", "raise SystemExit(0)\n")
    folder = agent_folder(tmp_path, "tinytool==1.0\nbroken==1.0\nleaving==1.0\n")
    done = mlebench("install", folder, "--wheels", wheels)
    assert done.returncode == 1
    reason = "broken cannot be imported: ModuleNotFoundError: No module named 'absent_module'"
    assert f"Error: the agent needy is not ready: {reason}" in done.stderr
    agent = load_agent(str(folder))
    assert venv_of(agent) is None
    assert f"not ready: {reason}" in mlebench("show", folder).stdout
    rows = {row["name"]: row for row in json.loads(mlebench("--json").stdout)}
    assert rows[f"{folder}#needy"]["state"] == f"not ready: {reason}"
    (record,) = [record for _, record in venvs.installed()]
    assert len(record.unimportable) == 2

    make_wheel(wheels, "broken", "1.1", "")
    (folder / "requirements.txt").write_text("tinytool==1.0\nbroken==1.1\n")
    venv, _ = venvs.install(load_agent(str(folder)), wheels)
    assert venv_fault(load_agent(str(folder))) is None
    (venv / "bin/python").unlink()
    assert "was made with is gone" in str(venv_fault(load_agent(str(folder))))


def test_an_agent_without_requirements_has_no_venv() -> None:
    dummy = load_agent("dummy")
    assert venv_of(dummy) is venv_fault(dummy) is None
    with pytest.raises(PrerequisiteError, match="nothing to install: name a file of them as `requirements`"):
        venvs.install(dummy)


def test_the_verb_shows_and_begins_agents(tmp_path: Path) -> None:
    assert [line.split()[0] for line in mlebench().stdout.splitlines()] == ["name", *built_in()]
    done = mlebench("new", "mine", "--folder", tmp_path)
    assert done.stdout == f"{tmp_path / 'mine'}\n"
    assert f"mlebench run --agent {tmp_path / 'mine'} -c spaceship-titanic --twin" in done.stderr
    facts = json.loads(mlebench("show", tmp_path / "mine", "--json").stdout)
    assert (facts["name"], facts["start"], facts["state"]) == ("mine", "start.sh", "ready")
    done = mlebench("show", "nobody")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: there is no agent 'nobody'")
