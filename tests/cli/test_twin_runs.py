"""Commands find run groups of twins without being told where they are."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.groups import plan_group

from mlebench.cli import main
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.records.run_groups import Group, find_group, newest_group
from mlebench.registry import Competition, Registry

TITANIC = "spaceship-titanic"
Call = Callable[..., tuple[str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """A command in this process: what it prints to stdout and stderr."""

    def run(*arguments: object, code: int = 0) -> tuple[str, str]:
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        streams = capsys.readouterr()
        assert (end.value.code or 0) == code, streams.err
        return streams.out, streams.err

    return run


def runs_dir(*, twin: bool) -> Path:
    return paths.default_runs_dir(paths.default_data_dir(twin=twin))


def run_twin() -> tuple[Group, str]:
    """A group that `mlebench run --twin` has made, and what that said on stderr."""
    command = [sys.executable, "-P", "-m", "mlebench", "run", "--agent", "dummy", "-c", TITANIC, "--twin"]
    done = subprocess.run([*command, "--sandbox", "process"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (folder,) = runs_dir(twin=True).iterdir()
    return Group.read(folder), done.stderr


def planned(folder: Path, competition_dir: Path) -> Group:
    """A planned group of one run in a runs directory."""
    return plan_group(Registry(competition_dir).get_competition(TITANIC), folder, agent="dummy")


def test_every_command_finds_the_group_of_twins(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group, said = run_twin()
    assert said.splitlines()[:2] == [
        f"Run group {group.paths.root}",
        "Sandbox: process, not sealed: the sandbox is a plain process",
    ]
    name, (run,) = group.record.id, group.runs()
    monkeypatch.chdir(tmp_path)
    out, err = call("runs")
    assert out == ""
    assert str(runs_dir(twin=False)) in err
    assert f"There is 1 in {runs_dir(twin=True)}" in err
    assert TITANIC in call("runs", "list", name)[0]
    shown = call("runs", "show", run.record.run_id)[0]
    assert run.record.run_id in shown
    assert call("runs", "show", f"{name}/{TITANIC}")[0] == shown
    for named in (name, str(group.paths.root)):
        assert f"{named} is a run group: `mlebench runs list {named}`" in call("runs", "show", named, code=1)[1]
    assert TITANIC in call("runs", "submission", name)[0]
    assert "dummy" in call("report", name)[0]
    out, err = call("report")
    assert "dummy" in out
    assert f"The newest run group: {group.paths.root}" in err
    assert '"total_runs": 1' in call("grade", name)[0]
    assert TITANIC in call("inspect", "failures", name)[0]
    call("bundle", "make", name)
    assert paths.bundle(tmp_path, name).is_file()
    assert "Sandbox: process, not sealed" in call("run", "--resume", name)[1]
    assert viewed(call, monkeypatch, name) == [group.paths.root]


def viewed(call: Call, monkeypatch: pytest.MonkeyPatch, *named: str) -> list[Path]:
    """The folders that `mlebench view` would serve."""
    folders: list[Path] = []
    monkeypatch.setattr("mlebench.web.site_reader.SiteReader", lambda served, registry: folders.extend(served))
    monkeypatch.setattr("mlebench.web.server.application", lambda source, hosts: None)
    monkeypatch.setattr("mlebench.core.serve.serve", lambda app, sockets: None)
    call("view", "--port", "0", *named)
    return folders


def test_a_group_of_real_data_comes_first_and_a_vague_name_is_refused(titanic: Competition, tmp_path: Path) -> None:
    real, twins = tmp_path / "runs", tmp_path / "twins-runs"
    first = planned(real, titanic.paths.data_dir)
    second = planned(twins, titanic.paths.data_dir)
    again = first.paths.root.name
    copy = twins / again
    if not copy.exists():
        second.paths.root.rename(copy)
    assert find_group(again, real, twins).paths.root == first.paths.root
    assert find_group(again, twins).paths.root == copy
    with pytest.raises(PrerequisiteError, match=re.escape(f"is the beginning of 2 run groups in {real} and {twins}")):
        find_group(again[:10], real, twins)
    with pytest.raises(PrerequisiteError, match=re.escape(f"neither as a path nor in {real} or {twins}")):
        find_group("nothing", real, twins)


def test_the_newest_group_is_the_one_started_last(titanic: Competition, tmp_path: Path) -> None:
    assert newest_group(tmp_path / "runs", tmp_path / "twins-runs") is None
    planned(tmp_path / "runs", titanic.paths.data_dir)
    newest = planned(tmp_path / "twins-runs", titanic.paths.data_dir)
    newest.paths.root.rename(tmp_path / "twins-runs" / "a-new-name")
    found = newest_group(tmp_path / "runs", tmp_path / "twins-runs")
    assert found is not None
    assert found.paths.root.name == "a-new-name"


def test_a_report_of_nothing_says_where_there_is_nothing(call: Call) -> None:
    _, err = call("report", code=2)
    assert str(runs_dir(twin=False)) in err
    assert str(runs_dir(twin=True)) in err
