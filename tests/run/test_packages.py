"""`--packages`: pip and uv install from a folder or an index in every sandbox, and reach nothing else."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.run_fixtures import SUBMIT, Mlebench
from support.sandboxes import ALL, ISOLATING, require, sandbox_params
from support.wheels import Index, make_wheel, serving

from mlebench.core.errors import PrerequisiteError, RequestError
from mlebench.packages.folder import folder_files
from mlebench.packages.proxy import WITH_LAYER
from mlebench.records.run_groups import Group
from mlebench.run.request import Request

Runner = Callable[..., Group]
INSTALL = "pip install melon && python -c 'import melon, seeds; print(melon.VERSION, seeds.VERSION)' && melon"


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    make_wheel(folder, "melon", needs=("seeds>=2",))
    make_wheel(folder, "seeds", "1.0")
    make_wheel(folder, "seeds", "2.0")
    return folder


@pytest.fixture
def index(wheels: Path) -> Iterator[Index]:
    with serving(Index()) as served:
        for wheel, uploaded in zip(sorted(wheels.iterdir()), ("2024-05-01", "2023-01-01", "2024-04-01"), strict=True):
            served.add(wheel, f"{uploaded}T12:00:00.000001Z")
        yield served


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def lines_of(group: Group) -> list[str]:
    (ended,) = group.runs()
    return ended.paths.log.read_text().splitlines()


def fetched(group: Group) -> list[str]:
    (ended,) = group.runs()
    assert ended.record.packages is not None
    return sorted(f"{file.name} {file.version}" for file in ended.record.packages.files)


@pytest.mark.parametrize("sandbox", sandbox_params(*ALL))
def test_pip_installs_from_a_folder(run: Runner, wheels: Path, sandbox: str) -> None:
    require(sandbox)
    group = run(f"{INSTALL}; {SUBMIT}", "--packages", str(wheels), sandbox=sandbox)
    (ended,) = group.runs()
    assert lines_of(group)[-2:] == ["1.0 2.0", "this is melon 1.0"]
    assert fetched(group) == ["melon 1.0", "seeds 2.0"]
    conditions = ended.record.conditions
    assert (conditions.packages, conditions.packages_sha256) == (str(wheels), group.record.packages_sha256)
    assert conditions.sealed == (sandbox in ISOLATING)
    assert not any("packages" in reason for reason in conditions.unsealed_by)


def uv_here() -> Path:
    uv = Path(sys.prefix, "bin", "uv")
    if not uv.is_file():
        pytest.skip(f"{uv} is not there: install uv beside mlebench")
    return uv


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """The folder of an agent with a start script and packages of its own."""
    folder = tmp_path / "grower"
    folder.mkdir()
    (folder / "config.yaml").write_text("grower:\n  start: grower/start.sh\n  requirements: grower/requirements.txt\n")
    (folder / "requirements.txt").write_text("seeds==1.0\nsoil==1.0\n")
    return folder


@pytest.fixture
def run_agent(mlebench: Mlebench, agent: Path, wheels: Path, tmp_path: Path) -> Runner:
    """Run the agent with a start script; its venv has old seeds, and soil, which the index lacks."""

    def call(script: str, *options: str, sandbox: str) -> Group:
        (agent / "start.sh").write_text(script)
        own = tmp_path / "own"
        make_wheel(own, "soil")
        shutil.copy(wheels / "seeds-1.0-py3-none-any.whl", own)
        env = {"MLEBENCH_VENVS_DIR": str(tmp_path / "venvs")}
        mlebench("agents", "install", str(agent), "--wheels", str(own), env=env)
        runs = tmp_path / "runs"
        named = ["--agent", str(agent), "-c", "spaceship-titanic", "--runs-dir", str(runs), "--sandbox", sandbox]
        mlebench("run", *named, "--time-limit", "120", *options, env=env)
        (folder,) = runs.iterdir()
        return Group.read(folder)

    return call


@pytest.mark.parametrize("sandbox", sandbox_params(*ISOLATING))
def test_packages_are_layered_over_those_of_the_agent(run_agent: Runner, wheels: Path, sandbox: str) -> None:
    """In its venv, which is read-only, pip could install nothing; and a newer version comes first."""
    require(sandbox)
    script = "python -c 'import seeds; print(seeds.VERSION)'; pip install melon >/dev/null && "
    script += "python -c 'import melon, seeds, soil; print(melon.VERSION, seeds.VERSION, soil.VERSION)'"
    group = run_agent(f"{script}\n{SUBMIT}\n", "--packages", str(wheels), sandbox=sandbox)
    assert lines_of(group) == ["1.0", "1.0 2.0 1.0"]
    assert fetched(group) == ["melon 1.0", "seeds 2.0"]


@pytest.mark.parametrize("sandbox", sandbox_params(*ISOLATING))
def test_uv_installs(run_agent: Runner, agent: Path, index: Index, sandbox: str) -> None:
    require(sandbox)
    shutil.copy(uv_here(), agent / "uv")
    script = (
        "$AGENT_DIR/uv pip install -q melon && python -c 'import melon, seeds; print(melon.VERSION, seeds.VERSION)'"
    )
    script += "; $AGENT_DIR/uv venv -q own && $AGENT_DIR/uv pip install -q --python own melon && own/bin/melon"
    group = run_agent(f"{script}\n{SUBMIT}\n", "--packages", f"{index.url}/simple", sandbox=sandbox)
    assert lines_of(group) == ["1.0 2.0", "this is melon 1.0"]
    assert fetched(group) == ["melon 1.0", "seeds 2.0"]
    (ended,) = group.runs()
    assert ended.record.conditions.unsealed_by == ["packages come from an open index"]


def test_pip_is_lent_to_a_python_that_has_none(run: Runner, wheels: Path) -> None:
    """As Debian's: even the agent's own Python can then install."""
    require("bubblewrap")
    without = "mkdir -p bare && python3 -m venv --without-pip bare/venv && PATH=$PWD/bare/venv/bin:$PATH && "
    lent = 'sh -c "$LAYERED" sh $PWD/again /run/mlebench/layer.py /run/mlebench/pip again/bin/pip --version'
    group = run(f"{without} export LAYERED='{WITH_LAYER}'; {lent}", "--packages", str(wheels), sandbox="bubblewrap")
    assert lines_of(group)[-1].startswith("pip ")
    assert "/home/again/lib" in lines_of(group)[-1]


def test_agents_are_told_and_without_the_option_nothing_changes(run: Runner, wheels: Path) -> None:
    shown = "grep -A1 ^Packages $INSTRUCTIONS; env | grep -c -E '^(PIP|UV)_'; command -v python3"
    first, second, count, python = lines_of(run(shown, "--packages", str(wheels)))
    assert (first, second.split()[:3]) == ("Packages", ["pip", "install", "NAME"])
    assert int(count) == 10
    assert python.endswith("/home/.packages/bin/python3")
    without = lines_of(run(shown))
    assert without[0] == "0"
    assert not without[1].endswith("/.packages/bin/python3")


def test_a_model_of_a_time_gets_the_packages_of_that_time(run: Runner, index: Index, tmp_path: Path) -> None:
    require("bubblewrap")
    listed = tmp_path / "allowed.txt"
    listed.write_text("# fruit\nMelon\n\nSeeds  # small\n")
    where = f"{index.url}/simple"
    options = ["--packages", where, "--packages-before", "2024-06-01", "--packages-allow", str(listed)]
    group = run(f"pip install melon pear 2>&1 | grep mlebench; {INSTALL}; {SUBMIT}", *options, sandbox="bubblewrap")
    (ended,) = group.runs()
    assert lines_of(group)[-2:] == ["1.0 2.0", "this is melon 1.0"]
    conditions = ended.record.conditions
    assert conditions.sealed
    assert (conditions.packages, conditions.packages_before) == (where, "2024-06-01")
    assert (conditions.packages_allow, conditions.packages_limit) == (["melon", "seeds"], 2 << 30)
    assert ended.record.packages is not None
    assert ended.record.packages.refusals["not_allowed"]
    assert not any("pear" in path for path in index.asked)
    early = run(f"{INSTALL}; true", *options[:2], "--packages-before", "2024-04-15", sandbox="bubblewrap")
    assert fetched(early) == []
    assert "No matching distribution found for melon" in "\n".join(lines_of(early))


HOSTILE = r"""
import http.client, os, socket
from urllib.parse import urlsplit

port = urlsplit(os.environ["PIP_INDEX_URL"]).port
for method, path in (
    ("GET", "http://{other}/simple/melon/"), ("CONNECT", "{other}"), ("POST", "/simple/melon/"),
    ("GET", "//{other}/"), ("GET", "/simple/..%2f..%2fsecret/"), ("GET", "/files/melon/../../secret"),
    ("GET", "/simple/melon%00/"), ("GET", "/simple/" + "x" * 9000 + "/"), ("GET", "/simple/melon/?url=http://{other}/"),
):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", "{other}")
    connection.endheaders()
    answer = connection.getresponse()
    print(method, answer.status, "secret" in answer.read().decode())
for port in (int("{other}".split(":")[1]), 80):
    try:
        socket.create_connection(("127.0.0.1", port), 5)
        print("reached", port)
    except OSError:
        print("closed")
"""


def test_a_hostile_agent_reaches_nothing_else(run: Runner, index: Index, wheels: Path) -> None:
    require("bubblewrap")
    with serving(Index(files={"/simple/melon/": b"secret", "/": b"secret"})) as other:
        program = HOSTILE.replace("{other}", other.url.removeprefix("http://"))
        group = run(
            f"python3 - <<'X'\n{program}\nX\n{SUBMIT}", "--packages", f"{index.url}/simple", sandbox="bubblewrap"
        )
        lines = lines_of(group)
        assert not other.asked
    assert not any("True" in line or "reached" in line for line in lines)
    assert [line.split()[1] for line in lines[:-2] if line.startswith(("CONNECT", "POST"))] == ["405", "405"]
    assert len(lines) == 11
    assert lines[-2:] == ["closed", "closed"]
    assert set(index.asked) <= {"/simple/melon/"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"packages_before": "2024-01-01"}, "is for an index"),
        ({"packages": None, "packages_allow": ["melon"]}, "need --packages"),
        ({"packages_allow": ["melon==1.0"]}, "is not the name of a package"),
        ({"packages_allow": []}, "names no package"),
        ({"packages_limit": 0}, "above 0"),
        ({"packages": "https://user:word@example.org/simple"}, "needs a password"),
        ({"packages": "https:///simple"}, "is not the address of an index"),
        ({"packages": "https://example.org/simple", "packages_before": "last May"}, "is not a date"),
    ],
)
def test_options_that_make_no_sense_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        Request(**{"agent": "dummy", "competitions": ["spaceship-titanic"], "packages": "wheels", **changes})


def test_folders_that_show_answers_are_refused(mlebench: Mlebench, wheels: Path, titanic: Any, tmp_path: Path) -> None:
    shutil.copy(titanic.answers, wheels / "notes.csv")
    named = ["run", "--agent", "dummy", "-c", titanic.id, "--sandbox", "process", "--runs-dir", str(tmp_path / "runs")]
    for folder, words in ((wheels, "holds the answers"), (titanic.private_dir, "is inside"), (tmp_path, "contains")):
        (tmp_path / "runs").mkdir(exist_ok=True)
        done = mlebench(*named, "--packages", str(folder), code=1)
        assert f"--packages: {folder}" in done.stderr
        assert words in done.stderr
        assert not list((tmp_path / "runs").iterdir())
    (tmp_path / "empty").mkdir()
    assert "has no wheels" in mlebench(*named, "--packages", str(tmp_path / "empty"), code=1).stderr


def test_a_group_does_not_continue_with_other_packages(mlebench: Mlebench, run: Runner, wheels: Path) -> None:
    group = run("exit 1", "--packages", str(wheels))
    make_wheel(wheels, "pear")
    said = mlebench("run", "--resume", str(group.paths.root), "--retry", "failed", code=1).stderr
    assert "has changed since these runs were planned" in said


def test_like_and_reports_keep_runs_with_packages_apart(mlebench: Mlebench, run: Runner, wheels: Path) -> None:
    groups = [run(SUBMIT), run(SUBMIT, "--packages", str(wheels))]
    like = ["run", "--like", str(groups[1].paths.root), "--runs-dir", str(groups[1].paths.root.parent)]
    assert "are not those" not in mlebench(*like).stderr
    make_wheel(wheels, "pear")
    assert "are not those that the earlier runs were given as --packages" in mlebench(*like).stderr
    named = [str(path) for path in sorted(groups[0].paths.root.parent.iterdir())]
    entries = json.loads(mlebench("report", *named, "--format", "json").stdout)["entries"]
    assert sorted(len(entry["runs"]) for entry in entries) == [1, 1, 2]
    labels = [entry["agent"].partition(", ")[2] for entry in entries]
    assert "no packages" in labels
    assert f"packages wheels ({str(groups[1].record.packages_sha256)[:12]})" in labels
    (ended,) = groups[1].runs()
    shown = mlebench("runs", "show", str(ended.paths.root)).stdout
    assert f"packages      wheels ({str(groups[1].record.packages_sha256)[:12]})" in shown
    assert "It could install packages: wheels" in mlebench("inspect", "rules", named[1], code=None).stdout


def test_a_folder_that_is_gone_is_named(mlebench: Mlebench, run: Runner, wheels: Path) -> None:
    with pytest.raises(PrerequisiteError, match="cannot read"):
        folder_files(wheels / "gone")
