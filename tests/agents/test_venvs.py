"""Venvs of agents: made once, offline, from locked versions, outside our own environment."""

import errno
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mlebench import paths
from mlebench.agents import base_python, built_in, load_agent, venv_fault, venv_of, venvs
from mlebench.errors import PrerequisiteError


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with one wheel: `tinytool` 1.0, which wants `absent`."""
    folder, name = tmp_path / "wheels", "tinytool-1.0"
    folder.mkdir()
    files = {
        "tinytool.py": "ANSWER = 42\ndef main():\n    print(ANSWER)\n",
        f"{name}.dist-info/METADATA": "Metadata-Version: 2.1\nName: tinytool\nVersion: 1.0\nRequires-Dist: absent\n",
        f"{name}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}.dist-info/entry_points.txt": "[console_scripts]\ntinytool = tinytool:main\n",
    }
    files[f"{name}.dist-info/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{name}.dist-info/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
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
    half = venvs._place(agent)
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
    half = venvs._place(agent)
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
    (tmp_path / "requirements.txt").write_text(f"# comment\n\n{text}\n")
    venvs._require_pins(tmp_path / "requirements.txt")


def test_the_python_must_be_the_one_the_agent_wants(tmp_path: Path, wheels: Path) -> None:
    folder = agent_folder(tmp_path, "tinytool==1.0\n", ', python: "3.99"')
    agent = load_agent(str(folder))
    with pytest.raises(PrerequisiteError, match=r"there is no python3\.99: name a Python 3\.99 with --python"):
        venvs.install(agent, wheels)
    with pytest.raises(PrerequisiteError, match=r"needs Python 3\.99, and .* is 3\.\d+: use --python"):
        venvs.install(agent, wheels, sys.executable)
    with pytest.raises(PrerequisiteError, match="does not work as a Python"):
        venvs.install(agent, wheels, "/bin/false")


def test_an_agent_without_requirements_has_no_venv() -> None:
    dummy = load_agent("dummy")
    assert venv_of(dummy) is venv_fault(dummy) is None
    with pytest.raises(PrerequisiteError, match="nothing to install"):
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
