"""AIDE, with its real package: it ends with a submission or the right exit code, whatever its model says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.real_agents import (
    TWINS,
    events_of,
    on,
    play,
    prepared,
    real,
    require_better_than_the_sample,
    require_events,
    the_end,
    venvs_with,
    with_knobs,
)
from support.records import usage_of
from support.run_fixtures import Mlebench
from support.scripted_models import requests

from mlebench.agents import load_agent
from mlebench.records.run_groups import Run
from mlebench.registry import Registry

Aide = Callable[..., list[Run]]
pytestmark = [pytest.mark.xdist_group("aide"), pytest.mark.timeout(1800)]  # one worker installs it, once
GOOD = {"is_bug": False, "summary": "It works.", "metric": 0.3, "lower_is_better": True}


def program(code: str) -> dict[str, Any]:
    return {"text": f"A plan.\n\n```python\n{code}\n```"}


def review(when: str = "", **arguments: Any) -> dict[str, Any]:
    call = {"name": "submit_review", "arguments": GOOD | arguments}
    return {"when": {"tool": "submit_review", "prompt": when}, "tool_calls": [call], "repeat": True}


@pytest.fixture(scope="module")
def venvs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return venvs_with("aide", tmp_path_factory)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return prepared(tmp_path_factory)


@pytest.fixture
def aide(venvs: Path, registry: Registry, mlebench: Mlebench, tmp_path: Path) -> Aide:
    def call(script: Any, *options: str, **knobs: Any) -> list[Run]:
        few = {"steps": 1, "drafts": 1, "program-seconds": 20}
        agent = with_knobs("aide", tmp_path, **few | knobs)
        return play(mlebench, registry, venvs, tmp_path, agent, script, *options)

    return call


def test_its_packages_are_locked_and_few() -> None:
    agent = load_agent("aide")
    lines = (agent.folder / str(agent.requirements)).read_text().splitlines()
    locked = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert locked["aideml"] == "0.2.2"
    assert not {"torch", "transformers", "streamlit"} & {*locked}
    assert agent.needs_network


@pytest.mark.parametrize("name", ["aide", "aide#aide/quick"])
def test_it_searches_as_in_the_reference(name: str) -> None:
    words = load_agent(name).arguments
    settings = dict(zip(words[::2], words[1::2], strict=True))
    assert (float(settings["--debug-depth"]), float(settings["--debug-probability"])) == (20, 1)


@real
def test_three_twins_whatever_the_models_are_called(aide: Aide, registry: Registry, tmp_path: Path) -> None:
    """AIDE itself has fixed addresses for models with these names."""
    models = ["--model", "claude-opus-4-5", "--model", "gemini-2.5-pro"]
    runs = aide("aide", *on(*TWINS), *models, "--workers", "2", feedback_model="gemini-2.5-pro")
    assert len(runs) == 3
    for run in runs:
        require_better_than_the_sample(run, registry)
        require_events(run, "start", "thought", "action", "output", "validation", "submission", "end")
        assert the_end(run).strip().endswith("steps")
        (node,) = json.loads((run.paths.logs / "aide/journal.json").read_text())["nodes"]
        assert (run.paths.code / "solution.py").read_text() == node["code"]
        assert node["metric"] == {"value": 0.3, "maximize": False}
        assert usage_of(run).calls == 2
    asked = requests(tmp_path)
    assert {request["model"] for request in asked if "tools" in request} == {"gemini-2.5-pro"}
    assert {request["model"] for request in asked if "tools" not in request} == {"claude-opus-4-5"}
    prompt = asked[0]["messages"][0]["content"]
    assert "Only /home/submission/submission.csv is graded" in prompt
    assert any(registry.get_competition(id).description[:400] in prompt for id in TWINS)


@real
def test_in_docker(aide: Aide, registry: Registry) -> None:
    (run,) = aide("aide", *on("spaceship-titanic"), "docker")
    require_better_than_the_sample(run, registry)


@real
def test_programs_and_reviews_that_fail(aide: Aide, registry: Registry) -> None:
    copy = "import shutil; shutil.copy('input/sample_submission.csv', 'working/submission.csv')"
    prose = {"text": "I would rather talk about it."}
    script = [
        {"when": {"tool": "submit_review"}, "tool_calls": [{"name": "no_such_tool", "arguments": {}}]},
        review("no luck", is_bug=True, metric=None),
        review("endless", is_bug=True, metric=None),
        review("rather talk", metric="high"),
        {"when": {"tool": "submit_review", "prompt": "unreviewed"}, "text": "Fine by me.", "repeat": True},
        review("the_sample", metric=1, lower_is_better=True),
        review("the_best", metric=0.2, lower_is_better=False),  # it disagrees about what is better
        review("wrong_format"),
        program("raise ValueError('no luck')"),
        prose,
        prose,
        prose,
        program(f"{copy}  # the_sample"),
        program("import time\nprint('endless', flush=True)\ntime.sleep(1000)"),
        program(f"{copy}  # unreviewed"),
        program("open('working/submission.csv', 'w').write('a,b')  # wrong_format"),
        program("print(1)  # the_best\n\n<<solve.py>>"),
    ]
    shipped = Path(__file__).parents[2] / "src/mlebench/gateway/scripted/scripts/solve.py"
    solve = shipped.read_text().replace('"submission.csv"))', '"working/submission.csv"))')
    script[-1]["text"] = script[-1]["text"].replace("<<solve.py>>", solve)
    (run,) = aide(script, *on("spaceship-titanic"), "--model", "gpt-4.1", steps=7, drafts=9, program_seconds=2)
    require_better_than_the_sample(run, registry)
    nodes = json.loads((run.paths.logs / "aide/journal.json").read_text())["nodes"]
    assert [node["is_buggy"] for node in nodes] == [True, True, False, True, True, True, False], nodes
    assert [node["exc_type"] for node in nodes[3:6]] == ["TimeoutError", None, "InvalidSubmission"]
    assert nodes[2]["metric"] == {"value": 1.0, "maximize": False}
    assert "no review" in nodes[4]["analysis"]
    assert (run.paths.code / "solution.py").read_text() == nodes[6]["code"]
    outputs = [event.text for event in events_of(run, "output")]
    assert "ValueError: no luck" in outputs[0]
    assert "endless" in outputs[3]
    assert "does not count" in outputs[5]
    assert len(events_of(run, "submission")) == 2


@real
@pytest.mark.parametrize(
    ("script", "options", "ended", "reason"),
    [
        pytest.param([{"status": 400, "repeat": True}], [], "agent_error", "3 steps in a row failed", id="refused"),
        pytest.param(
            [{**program("import os; os._exit(1)"), "usage": {"input": 30_000, "output": 1}, "repeat": True}],
            ["--budget", "20000tokens"],
            "finished",
            "budget",
            id="budget",
        ),
    ],
)
def test_a_model_that_stops_answering(aide: Aide, script: Any, options: list[str], ended: str, reason: str) -> None:
    (run,) = aide(script, *on("spaceship-titanic"), *options, steps=5)
    assert run.record.ended == ended, run.paths.log.read_text()
    assert run.record.submission == "none"
    assert reason in the_end(run)
