"""`--environment`: an environment of the host is used as it is, is recorded, shows nothing it should not, and stays."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.run_fixtures import SUBMIT, Mlebench
from support.sandboxes import make_task, require, run_task, sandbox_params
from support.traps import AGENT

from mlebench.agents import load_agent
from mlebench.core.errors import PrerequisiteError
from mlebench.records.run_groups import Group
from mlebench.registry import Competition
from mlebench.run.python_environment import ENVIRONMENT, PythonEnvironment
from mlebench.sandbox import sandbox_named

Runner = Callable[..., Group]
VERSION = "{}.{}".format(*sys.version_info)


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A venv with the package `tinytool` 1.0, a module and a program."""
    prefix = tmp_path / "envs" / "tiny"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    add_package(prefix, "tinytool", "1.0")
    program = prefix / "bin" / "tinytool"
    program.write_text(f"#!{prefix}/bin/python\nimport tinytool\nprint(tinytool.__file__)\n")
    program.chmod(0o755)
    return prefix


@pytest.fixture
def conda(tmp_path: Path, venv: Path) -> Path:
    """An environment that has a Python of its own, as conda's have; the library is the one that is there."""
    prefix = tmp_path / "envs" / "big"
    library = Path(sys.base_prefix, "lib", f"python{VERSION}")
    (prefix / "bin").mkdir(parents=True)
    shutil.copy(os.path.realpath(sys.executable), prefix / "bin" / "python")
    (prefix / "lib" / library.name).mkdir(parents=True)
    for entry in library.iterdir():
        if entry.name != "site-packages":
            (prefix / "lib" / library.name / entry.name).symlink_to(entry)
    ask = [prefix / "bin" / "python", "-I", "-c", "import site; print(site.getsitepackages()[0])"]  # Debian has its own
    folder = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip()
    shutil.copytree(site_packages(venv), folder)
    shutil.copy(venv / "bin" / "tinytool", prefix / "bin")
    program = prefix / "bin" / "tinytool"
    program.write_text(program.read_text().replace(str(venv), str(prefix)))
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta" / "cuda-toolkit-12.1-h0_1.json").write_text("{}")
    return prefix


def site_packages(prefix: Path) -> Path:
    return prefix / "lib" / f"python{VERSION}" / "site-packages"


def add_package(prefix: Path, name: str, version: str, source: Path | None = None) -> Path:
    """Add a package as an installer would; with a source, in editable mode."""
    facts = site_packages(prefix) / f"{name}-{version}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if source is None:
        (site_packages(prefix) / f"{name}.py").write_text("")
    else:
        (facts / "direct_url.json").write_text(json.dumps({"url": source.as_uri(), "dir_info": {"editable": True}}))
    return facts


def _state(folder: Path) -> dict[str, tuple[object, ...]]:
    return {
        str(path): (path.lstat().st_mode, path.lstat().st_uid, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
        if "__pycache__" not in path.parts
    }


@pytest.mark.parametrize("kind", ["venv", "conda"])
@pytest.mark.parametrize("sandbox", sandbox_params("bubblewrap", "process"))
def test_runs_use_it_and_their_records_say_so(
    run: Runner, request: pytest.FixtureRequest, sandbox: str, kind: str
) -> None:
    require(sandbox)
    prefix: Path = request.getfixturevalue(kind)
    program = 'python -c "import sys; print(sys.prefix)"; tinytool; echo $VIRTUAL_ENV $CONDA_PREFIX; '
    program += f'eval "$(conda shell.bash hook)" && conda activate agent; echo $CONDA_PREFIX; which python; {SUBMIT}'
    if sandbox == "process":
        program = program.replace('eval "$(conda shell.bash hook)" && conda activate agent', f"CONDA_PREFIX={prefix}")
    group = run(f"{program}; cat $INSTRUCTIONS", "--environment", str(prefix), sandbox=sandbox)
    (ended,) = group.runs()
    (module,) = prefix.rglob("tinytool.py")
    log = ended.paths.log.read_text()
    assert log.splitlines()[:5] == [str(prefix), str(module), str(prefix), str(prefix), f"{prefix}/bin/python"]
    assert f"\nPython\n  {prefix}/" in log
    packages = ["tinytool==1.0"] if kind == "venv" else ["cuda-toolkit=12.1=h0_1", "tinytool==1.0"]
    record, conditions = group.record, ended.record.conditions
    assert (record.environment, record.environment_packages) == (str(prefix), packages)
    assert record.environment_python == "{}.{}.{}".format(*sys.version_info)
    assert (conditions.environment, conditions.environment_sha256) == (str(prefix), record.environment_sha256)
    assert conditions.sealed == (sandbox == "bubblewrap")


def folder_of_agent(tmp_path: Path, start: str, entry: str = "") -> Path:
    folder = tmp_path / "agents" / "user"
    folder.mkdir(parents=True)
    (folder / "start.sh").write_text(start)
    (folder / "requirements.txt").write_text("Tiny_Tool==1.0\n" if "requirements" in entry else "")
    shutil.copy(AGENT / "change_file.py", folder)
    (folder / "config.yaml").write_text(f"user: {{start: user/start.sh{entry}}}\n")
    return folder


@pytest.fixture
def run_agent(mlebench: Mlebench, titanic: Competition, tmp_path: Path) -> Callable[..., Group]:
    def call(folder: Path, *options: str, sandbox: str = "bubblewrap") -> Group:
        runs = tmp_path / "runs"
        named = ["--agent", str(folder), "-c", titanic.id, "--sandbox", sandbox, "--runs-dir", str(runs)]
        mlebench("run", *named, "--time-limit", "60", *options)
        (root,) = runs.iterdir()
        return Group.read(root)

    return call


def test_no_agent_changes_it_for_the_next_run(run_agent: Runner, venv: Path, tmp_path: Path) -> None:
    require("bubblewrap")
    before = _state(venv)
    module = site_packages(venv) / "tinytool.py"
    attack = f"python3 $AGENT_DIR/change_file.py {module}; python3 $AGENT_DIR/change_file.py {venv}/bin/tinytool"
    new = f"touch {module.parent}/sitecustomize.py; mkdir {venv}/bin/new; mv {venv}/bin {venv}/away; rm -rf {venv}/lib"
    agent = folder_of_agent(tmp_path, f"{SUBMIT}\n({attack}) > $LOGS_DIR/done\n{new}\ntinytool\n")
    group = run_agent(agent, "--environment", str(venv), "--seeds", "2")
    assert _state(venv) == before
    for ended in group.runs():
        assert (ended.paths.logs / "done").read_text() == "[]\n[]\n"
        assert ended.paths.log.read_text().splitlines()[-1] == str(module)


def test_it_takes_the_place_of_the_agents_venv(run_agent: Runner, venv: Path, tmp_path: Path) -> None:
    """The venv need not be installed. What the agent requires must be in the environment."""
    require("bubblewrap")
    entry = f', requirements: user/requirements.txt, environment: "{venv}"'
    agent = folder_of_agent(tmp_path, f"{SUBMIT}\nwhich python\n", entry)
    with pytest.raises(PrerequisiteError, match="takes the place of the agent's venv, and lacks Tiny_Tool"):
        ENVIRONMENT.refuse(venv, [], agent=load_agent(str(agent)))
    add_package(venv, "tiny.tool", "2.0")
    group = run_agent(agent)
    (ended,) = group.runs()
    assert ended.paths.log.read_text() == f"{venv}/bin/python\n"
    assert group.record.environment == str(venv)
    assert group.record.agent.python_environment == str(venv)


def test_an_environment_must_have_the_python_that_the_agent_needs(venv: Path, tmp_path: Path) -> None:
    agent = folder_of_agent(tmp_path, "", ', python: "3.1"')
    with pytest.raises(PrerequisiteError, match=rf"needs Python 3\.1, and .* has {VERSION}"):
        ENVIRONMENT.refuse(venv, [], agent=load_agent(str(agent)))


def test_the_mlebench_that_is_running_is_masked_in_it(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("bubblewrap")
    package = site_packages(venv) / "mlebench"
    package.mkdir()
    (package / "__init__.py").write_text("print('the graders')")
    add_package(venv, "mlebench", "2.0", tmp_path)
    for name in ("_editable_impl_mlebench.pth", "__editable__.mlebench-2.0.pth"):
        (site_packages(venv) / name).write_text(f"{package.parent}\n")
    monkeypatch.setattr("mlebench.core.paths.module_dir", lambda: package)
    ENVIRONMENT.refuse(venv, [])
    environment = PythonEnvironment.read(venv)
    assert environment.packages == ("tinytool==1.0",)
    command = f"cd {package.parent}; tinytool; ls -A mlebench mlebench-*; cat *.pth; python -c 'import mlebench.grade'"
    env = {"PATH": f"{venv}/bin:/usr/bin:/bin"}
    task = make_task(tmp_path, command, binds=tuple(environment.binds()), hidden=tuple(environment.hidden()), env=env)
    _, log = run_task("bubblewrap", task)
    lines = [line for line in log.splitlines() if line and not line.endswith(".pth: Permission denied")]
    assert lines[:3] == [f"{package.parent}/tinytool.py", "mlebench:", "mlebench-2.0.dist-info:"]
    assert lines[3].startswith("Traceback")
    assert lines[-1] == "ModuleNotFoundError: No module named 'mlebench.grade'"


def _copy(venv: Path) -> Path:
    package = site_packages(venv) / "mlebench"
    package.mkdir()
    (package / "__init__.py").touch()
    return package


def _path_file(venv: Path, name: str = "easy-install.pth") -> Path:
    source = venv.parent / "checkout"
    (source / "mlebench").mkdir(parents=True)
    (source / "mlebench" / "__init__.py").touch()
    (site_packages(venv) / name).write_text(f"import sys\n/nowhere\n{source}\n")
    return site_packages(venv) / name


def _editable(venv: Path) -> Path:
    source = venv.parent / "checkout"
    (source / "src" / "mlebench").mkdir(parents=True)
    (source / "src" / "mlebench" / "__init__.py").touch()
    return add_package(venv, "mlebench", "1.0", source)


def _private(venv: Path) -> Path:
    private = venv / "share" / "some-competition" / "prepared" / "private"
    private.mkdir(parents=True)
    return private


def _group(venv: Path) -> Path:
    folder = venv / "runs" / "2026_run-group_x"
    folder.mkdir(parents=True)
    for name in ("group.json", "metadata.json"):
        (folder / name).touch()
    return folder


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_copy, "is another copy of mlebench"),
        (_path_file, "leads to another copy of mlebench"),
        (lambda venv: _path_file(venv, "mlebench.egg-link"), "leads to another copy of mlebench"),
        (_editable, "leads to another copy of mlebench"),
        (_private, "is private data of a competition"),
        (_group, "is a run group"),
    ],
)
def test_what_agents_must_not_see_is_refused_by_name(venv: Path, spoil: Callable[[Path], Path], words: str) -> None:
    (site_packages(venv) / "odd.pth").write_text(f"{'x' * 5000}\n\0\n")
    ENVIRONMENT.refuse(venv, [venv.parent / "data"])
    found = spoil(venv)
    with pytest.raises(PrerequisiteError, match="--environment: ") as refused:
        ENVIRONMENT.refuse(venv, [])
    assert f"{found} {words}" in str(refused.value)


def test_data_and_runs_in_it_and_homes_are_refused(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (venv / "data").mkdir()
    with pytest.raises(PrerequisiteError, match=f"contains {venv}/data"):
        ENVIRONMENT.refuse(venv, [venv / "data"])
    with pytest.raises(PrerequisiteError, match=f"is inside {venv.parent}"):
        ENVIRONMENT.refuse(venv, [venv.parent])
    monkeypatch.setattr(Path, "home", lambda: venv / "home")
    with pytest.raises(PrerequisiteError, match="holds the home folder"):
        ENVIRONMENT.refuse(venv, [])


def test_what_cannot_work_is_refused(venv: Path, tmp_path: Path, mlebench: Mlebench, titanic: Competition) -> None:
    with pytest.raises(PrerequisiteError, match="has the packages of its image"):
        ENVIRONMENT.refuse(venv, [], sandbox_named("docker"))
    named = ["--agent-command", "true", "-c", titanic.id, "--sandbox", "process", "--runs-dir", str(tmp_path / "runs")]
    said = mlebench("run", *named, "--environment", str(tmp_path), code=1).stderr
    assert "--environment: " in said
    assert "is no environment: it has neither conda-meta/ nor a pyvenv.cfg" in said
    assert "Traceback" not in said
    assert not (tmp_path / "runs").exists()
    for program in (venv / "bin").glob("python*"):
        program.unlink()
    with pytest.raises(PrerequisiteError, match="has no Python"):
        ENVIRONMENT.refuse(venv, [])


def test_without_docker_auto_means_a_sandbox_that_has_this_machines_programs(
    mlebench: Mlebench, titanic: Competition, venv: Path, tmp_path: Path
) -> None:
    require("bubblewrap")
    runs = tmp_path / "runs"
    named = ["--agent-command", SUBMIT, "-c", titanic.id, "--runs-dir", str(runs), "--environment", str(venv)]
    mlebench("run", *named)
    (root,) = runs.iterdir()
    assert Group.read(root).record.sandbox == "bubblewrap"


def test_packages_in_editable_mode_outside_it_are_named(run: Runner, mlebench: Mlebench, venv: Path) -> None:
    for name, source in {"within": venv / "src", "outside": venv.parent / "project"}.items():
        source.mkdir()
        add_package(venv, name, "1.0", source)
    assert PythonEnvironment.read(venv).unseen() == ["outside"]
    require("bubblewrap")
    done = mlebench("doctor", "--environment", str(venv))
    assert "Python {}.{}.{}, 3 packages, works in bubblewrap".format(*sys.version_info) in done.stdout
    assert "agents cannot see outside" in done.stdout


def test_a_venv_with_the_systems_packages_has_them(tmp_path: Path, venv: Path) -> None:
    config = venv / "pyvenv.cfg"
    config.write_text(config.read_text().replace("packages = false", "packages = true"))
    wide = PythonEnvironment.read(venv)
    assert set(wide.site_packages) > {site_packages(venv)}


def test_a_changed_environment_ends_a_group_and_is_mentioned_by_like(
    mlebench: Mlebench, run: Runner, venv: Path
) -> None:
    group = run("exit 1", "--environment", str(venv))
    like = ["run", "--like", str(group.paths.root), "--runs-dir", str(group.paths.root.parent)]
    assert "given as --environment" not in mlebench(*like).stderr
    moved = venv.rename(venv.with_name("moved"))
    assert PythonEnvironment.read(moved).sha256 == group.record.environment_sha256
    moved.rename(venv)
    add_package(venv, "more", "0.1")
    more = PythonEnvironment.read(venv).sha256
    _editable(venv)  # a copy of mlebench that was not there when the runs were planned
    assert PythonEnvironment.read(venv).sha256 != more
    said = mlebench("run", "--resume", str(group.paths.root), "--retry", "failed", code=1).stderr
    assert f"--environment: {venv} has changed since these runs were planned" in said
    assert (
        f"the files in {venv} are not those that the earlier runs were given as --environment"
        in mlebench(*like, code=1).stderr
    )


def test_doctor_says_that_a_python_does_not_work_in_a_sandbox(mlebench: Mlebench, venv: Path, tmp_path: Path) -> None:
    """Its Python is reached by a link that no sandbox shows."""
    require("bubblewrap")
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "python3"
    link.symlink_to(os.path.realpath(sys.executable))
    for program in (venv / "bin").glob("python*"):
        program.unlink()
    (venv / "bin" / "python").symlink_to(link)
    shown = mlebench("doctor", "--environment", str(venv)).stdout
    (line,) = [line for line in shown.splitlines() if " environment " in line]
    assert line.startswith("bad")
    assert "but not in bubblewrap" in line
