"""mlab in sandboxes, with a scripted model behind the gateway: whole runs, and how they end."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.real_agents import require_better_than_the_sample
from support.records import usage_of
from support.run_fixtures import Mlebench
from support.sandboxes import require
from support.scripted_models import act, playing

from mlebench.agents import load_agent
from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.records.run_groups import Group, Run
from mlebench.records.timeline import read_timeline
from mlebench.registry import Registry

TWINS = ("nomad2018-predict-transparent-conductors", "spaceship-titanic", "tabular-playground-series-dec-2021")
Play = Callable[..., Group]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    registry = Registry(tmp_path_factory.mktemp("twins"))
    for id in TWINS:
        prepare(registry.get_competition(id), TwinSource())
    return registry


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """mlab with settings for tests and without its packages, which take a while to install."""
    folder = tmp_path / "mlab"
    shutil.copytree(load_agent("mlab").folder, folder)
    entry = yaml.safe_load((folder / "config.yaml").read_text())["mlab"]
    del entry["requirements"]
    entry["kwargs"] |= {"steps": 10, "command-seconds": 5, "patience-seconds": 2}
    (folder / "config.yaml").write_text(yaml.safe_dump({"mlab": entry}))
    return folder


@pytest.fixture
def play(registry: Registry, folder: Path, mlebench: Mlebench, tmp_path: Path) -> Play:
    """Run mlab against a script."""

    def call(script: Any, *options: str, sandbox: str = "bubblewrap", agent: str | None = None) -> Group:
        require(sandbox)
        runs = tmp_path / "runs"
        named = ["--agent", agent or str(folder), "--data-dir", str(registry.get_data_dir()), "--runs-dir", str(runs)]
        limits = ["--sandbox", sandbox, "--time-limit", "120", "--memory", "2g"]
        with playing(script, tmp_path) as url:
            model = ["--network", "model", "--endpoint", url, "--model", "scripted"]
            mlebench("run", *named, *limits, *model, *options)
        (made,) = runs.iterdir()
        return Group.read(made)

    return call


@pytest.mark.parametrize("sandbox", ["bubblewrap", "docker"])
def test_submissions_on_three_twins_beat_the_sample(play: Play, registry: Registry, sandbox: str) -> None:
    group = play("mlab", "--workers", "2", *(word for id in TWINS for word in ("-c", id)), sandbox=sandbox)
    runs = list(group.runs())
    assert len(runs) == 3
    for run in runs:
        require_better_than_the_sample(run, registry)
        assert usage_of(run).calls == 7
        assert (run.paths.code / "solve.py").is_file()
        _require_told(run)


def _require_told(run: Run) -> None:
    """Check that the run's story has all its parts, and the gateway's account of calls."""
    timeline = read_timeline(run)
    assert timeline.left_out == []
    sources = {(event.kind, event.source) for event in timeline.events}
    assert sources >= {(kind, "agent") for kind in ("start", "thought", "action", "output", "submission", "end")}
    assert sources >= {("call", "gateway"), ("submission", "host"), ("end", "host")}
    assert timeline.usage
    assert (timeline.usage.source, timeline.usage.calls) == ("gateway", 7)


FINISH = act("finish", reason="enough")


@pytest.mark.parametrize(
    ("script", "options", "ended", "reason"),
    [
        pytest.param(
            [act("execute", command="python3 -c 1/0"), FINISH], (), "finished", "the model is done", id="crash"
        ),
        pytest.param([act("execute", command="kill -9 $PPID")], (), "agent_error", None, id="suicide"),
        pytest.param(
            [act("execute", command="while true; do :; done"), FINISH],
            (),
            "finished",
            "the model is done",
            id="endless",
        ),
        pytest.param([{"text": "Well.", "repeat": True}], (), "finished", "no action was found", id="prose"),
        pytest.param([{"status": 500, "repeat": True}], (), "agent_error", "the model has not answered", id="failing"),
        pytest.param(
            [{**act("list"), "usage": {"input": 30_000, "output": 1}, "repeat": True}],
            ("--budget", "50000tokens"),
            "finished",
            "the budget for the model is used up",
            id="budget",
        ),
    ],
)
def test_a_run_ends_as_it_should(
    play: Play, script: Any, options: tuple[str, ...], ended: str, reason: str | None
) -> None:
    (run,) = play(script, "-c", "spaceship-titanic", *options).runs()
    assert run.record.ended == ended, run.paths.log.read_text()
    assert run.record.submission == "none"
    ends = [event.title for event in read_timeline(run).events if event.kind == "end" and event.source == "agent"]
    assert len(ends) == (reason is not None)
    assert all(str(reason) in end for end in ends)


CODER = """
import json, os, subprocess, urllib.request
task = {"role": "user", "content": open(os.environ["INSTRUCTIONS"]).read()}
body = {"model": os.environ["MLEBENCH_MODEL"], "messages": [task]}
head = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), head)
answer = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
subprocess.run(["bash", "-c", answer], check=True)
"""


def test_without_a_trajectory_the_story_comes_from_the_trace(play: Play, tmp_path: Path) -> None:
    """Like any coding agent on the command line, through `command`."""
    script = [{"when": "submission.csv", "text": "cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"}]
    command = f"python3 - <<'END'{CODER}END"
    (run,) = play(script, "--agent-command", command, "-c", "spaceship-titanic", agent="command").runs()
    assert (run.record.ended, run.record.submission) == ("finished", "present"), run.paths.log.read_text()
    (call,) = (event for event in read_timeline(run).events if event.kind == "call")
    assert call.text == script[0]["text"]


@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    os.environ.get("MLEBENCH_REAL_AGENTS") != "1", reason="mlab's packages are installed if MLEBENCH_REAL_AGENTS=1"
)
def test_its_packages_are_installed(
    play: Play, mlebench: Mlebench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLEBENCH_VENVS_DIR", str(tmp_path / "venvs"))
    mlebench("agents", "install", "mlab", "--python", sys.executable)
    program = "import numpy, pandas, scipy, sklearn.ensemble as e; e.RandomForestClassifier().fit([[1], [2]], [0, 1])"
    script = [act("execute", command=f"python3 -c '{program}'"), FINISH]
    (run,) = play(script, "-c", "spaceship-titanic", agent="mlab").runs()
    (output,) = (event for event in read_timeline(run).events if event.kind == "output")
    assert output.facts["exit_code"] == 0, output.text
