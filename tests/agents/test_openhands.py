"""OpenHands, with its real packages: it ends with a submission or the right exit code, whatever its model says."""

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

OpenHands = Callable[..., list[Run]]
pytestmark = [pytest.mark.xdist_group("openhands"), pytest.mark.timeout(1800)]  # one worker installs it, once
FINISH = {"tool_calls": [{"name": "finish", "arguments": {"message": "Done."}}]}


def call(name: str, arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


@pytest.fixture(scope="module")
def venvs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return venvs_with("openhands", tmp_path_factory)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return prepared(tmp_path_factory)


@pytest.fixture
def openhands(venvs: Path, registry: Registry, mlebench: Mlebench, tmp_path: Path) -> OpenHands:
    def call(script: Any, *options: str, **knobs: Any) -> list[Run]:
        agent = with_knobs("openhands", tmp_path, **{"steps": 20, "quiet_seconds": 3} | knobs)
        return play(mlebench, registry, venvs, tmp_path, agent, script, *options)

    return call


def test_its_packages_are_locked_and_there_is_no_browser() -> None:
    agent = load_agent("openhands")
    lines = (agent.folder / str(agent.requirements)).read_text().splitlines()
    locked = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert locked["openhands-sdk"] == locked["openhands-tools"] == "1.58.0"
    assert not {"browser-use", "lmnr", "posthog"} & {*locked}
    assert (agent.python, agent.needs_network) == ("3.12", True)


@real
def test_three_twins(openhands: OpenHands, registry: Registry, tmp_path: Path) -> None:
    runs = openhands("openhands", *on(*TWINS), "--model", "claude-opus-4-5", "--workers", "2")
    assert len(runs) == 3
    for run in runs:
        require_better_than_the_sample(run, registry)
        require_events(run, "start", "thought", "action", "output", "submission", "end")
        assert the_end(run).strip().endswith("finished")
        assert list((run.paths.logs / "openhands").glob("*/events/event-*.json"))
        assert (run.paths.code / "solve.py").is_file()
        assert usage_of(run).calls == 3
    asked = requests(tmp_path)
    assert {request["model"] for request in asked} == {"claude-opus-4-5"}
    tools = {tool["function"]["name"] for tool in asked[0]["tools"]}
    assert {"terminal", "file_editor", "task_tracker", "finish"} <= tools
    prompt = str(asked[0]["messages"])
    assert "Only /home/submission/submission.csv is graded" in prompt
    assert "takes at most 5 minutes" in prompt


@real
def test_answers_that_do_not_help(openhands: OpenHands, registry: Registry) -> None:
    """And tools that the shipped script does not use."""
    shipped = Path(__file__).parents[2] / "src/mlebench/gateway/scripted/scripts/solve.py"
    script = [
        {"text": "I would rather talk about it."},
        call("browse_the_web", {"url": "http://example.com"}),
        call("terminal", "{not json"),
        call("terminal", {"command": "python3 -c 1/0"}),
        call("terminal", {"command": "python3 -c 'while True: pass'"}),
        call("terminal", {"command": "C-c", "is_input": True}),
        call("task_tracker", {"command": "plan", "task_list": [{"title": "train", "notes": "", "status": "todo"}]}),
        call("file_editor", {"command": "create", "path": "/home/code/solve.py", "file_text": shipped.read_text()}),
        FINISH,  # too early
        call("terminal", {"command": "OUTPUT=$SUBMISSION_DIR/submission.csv python3 solve.py"}),
        FINISH,
    ]
    (run,) = openhands(script, *on("spaceship-titanic"))
    require_better_than_the_sample(run, registry)
    outputs = events_of(run, "output")
    assert "'browse_the_web' not found" in outputs[0].text
    assert "Error validating tool" in outputs[1].text
    assert "ZeroDivisionError" in outputs[2].text
    assert [output.facts.get("exit_code") for output in outputs[:5]] == [1, 1, 1, -1, 130]
    assert "KeyboardInterrupt" in outputs[4].text
    assert len(events_of(run, "submission")) == 1
    assert the_end(run).strip().endswith("finished")


@real
@pytest.mark.parametrize(
    ("script", "options", "ended", "reason"),
    [
        pytest.param([{"text": "Well.", "repeat": True}], [], "finished", "the model stopped", id="prose"),
        pytest.param(
            [{**call("think", {"thought": "Hm."}), "usage": {"input": 30_000, "output": 1}, "repeat": True}],
            ["--budget", "40000tokens"],
            "finished",
            "budget",
            id="budget",
        ),
        pytest.param([{"status": 400, "repeat": True}], [], "agent_error", "no model", id="refused"),
    ],
)
def test_an_end_without_a_submission(
    openhands: OpenHands, script: Any, options: list[str], ended: str, reason: str
) -> None:
    (run,) = openhands(script, *on("spaceship-titanic"), *options)
    assert run.record.ended == ended, run.paths.log.read_text()
    assert run.record.submission == "none"
    assert reason in the_end(run)
