"""What `aide` and `openhands` do apart from their packages: limits, models, texts, and trajectories line by line."""

import json
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mlebench.agents import load_agent

AIDE, OPENHANDS = (Path(load_agent(name).folder) for name in ("aide", "openhands"))
NAMES = ("bench", "review", "events")


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """Files of the agents that need only the standard library."""
    monkeypatch.setattr(sys, "path", [str(AIDE), str(OPENHANDS), *sys.path])
    yield {name: import_module(name) for name in NAMES}
    for name in NAMES:
        sys.modules.pop(name)


@pytest.fixture
def bench(modules: dict[str, ModuleType]) -> ModuleType:
    return modules["bench"]


def test_some_time_is_reserved_for_the_end(bench: ModuleType) -> None:
    assert 94 < bench.Clock(100).left() <= 95
    assert 86_330 < bench.Clock(86_400).left() <= 86_340


def test_time_limits_are_given_in_words(bench: ModuleType) -> None:
    assert [bench.duration(seconds) for seconds in (86_400, 7_199, 119)] == ["24 hours", "119 minutes", "119 seconds"]


def test_a_model_is_reached_through_the_gateway_or_not_at_all(bench: ModuleType) -> None:
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "token", "MLEBENCH_MODEL": "first"}
    assert bench.require_endpoint(env) == ("http://127.0.0.1:1/v1", "token")
    assert bench.require_model(None, env) == "first"
    assert bench.require_model("second", env) == "second"
    with pytest.raises(SystemExit, match="--network model"):
        bench.require_endpoint({"OPENAI_API_KEY": "token"})
    with pytest.raises(SystemExit, match="--model NAME"):
        bench.require_model(None, {})


def test_prompts_are_filled_and_other_braces_stay(bench: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("{a} and {b} and {'c': 1}")
    assert bench.fill(tmp_path / "prompt.txt", a="{b}") == "{b} and {b} and {'c': 1}"


@pytest.mark.parametrize(("code", "fault"), [(0, None), (1, "Columns are missing."), (2, None)])
def test_a_wrong_format_is_reported(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, fault: str | None
) -> None:
    """What cannot be checked counts as right."""
    (tmp_path / "validate_submission.sh").write_text(f"echo Columns are missing.; exit {code}")
    monkeypatch.setenv("INSTRUCTIONS", str(tmp_path / "instructions.txt"))
    assert bench.format_fault(tmp_path / "submission.csv") == fault


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ('{"is_bug": false, "summary": "s", "metric": 1, "lower_is_better": false}', 1.0),
        ('{"is_bug": false, "summary": "s", "metric": 0.5, "lower_is_better": false}', 0.5),
        ('{"is_bug": false, "summary": "s", "metric": "0.5", "lower_is_better": false}', None),
        ('{"is_bug": false, "summary": "s", "metric": true, "lower_is_better": false}', None),
        ('{"is_bug": false, "summary": "s", "metric": NaN, "lower_is_better": false}', None),
    ],
)
def test_reviews(modules: dict[str, ModuleType], text: str, metric: float | None) -> None:
    wanted = {"is_bug": False, "summary": "s", "metric": metric, "lower_is_better": False}
    review = modules["review"].read_review(text)
    assert review == wanted
    assert not isinstance(review["metric"], int)


@pytest.mark.parametrize("text", [None, "", "Fine.", "[]", "{}", '{"is_bug": "no"}'])
def test_text_that_is_not_a_review(modules: dict[str, ModuleType], text: str | None) -> None:
    assert modules["review"].read_review(text) is None


def action(id: str, answer: str, tool: str, arguments: Any, thought: str = "") -> dict[str, Any]:
    return {
        "kind": "ActionEvent",
        "source": "agent",
        "thought": [{"type": "text", "text": thought}],
        "tool_name": tool,
        "tool_call_id": id,
        "tool_call": {"id": id, "name": tool, "arguments": json.dumps(arguments)},
        "llm_response_id": answer,
    }


def observation(id: str, text: str, **keys: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"kind": "ObservationEvent", "tool_call_id": id, "observation": {"content": content, **keys}}


def test_openhands_events_are_recorded_as_they_come(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    path = tmp_path / "trajectory.jsonl"
    translator = modules["events"].EventTranslator(modules["bench"].Trajectory(path))
    events = [
        {"kind": "SystemPromptEvent", "source": "agent"},
        {"kind": "MessageEvent", "source": "user", "llm_message": {"content": [{"text": "The task."}]}},
        action("1", "a", "terminal", {"command": "ls", "security_risk": "LOW"}, "I look."),
        action("2", "a", "think", {"thought": "Hm."}, "I look."),
        observation("1", "data\n", exit_code=0),
        observation("2", "Logged."),
        action("3", "b", "no_such_tool", {"command": "view", "path": "x"}),
        {"kind": "AgentErrorEvent", "tool_call_id": "3", "error": "There is no such tool."},
        {"kind": "MessageEvent", "source": "agent", "llm_response_id": "c", "llm_message": {"content": "Done."}},
        {"kind": "ConversationErrorEvent", "code": "Stop", "detail": "enough"},
    ]
    before = time.time()
    counts = []
    for event in events:
        translator.enter(event)
        translator.event(event)
        counts.append(len(path.read_text().splitlines()) if path.exists() else 0)
    assert counts == [0, 0, 2, 3, 4, 5, 6, 7, 8, 9], "each event is on disk at once"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(before <= line.pop("time") <= time.time() for line in lines)
    assert all(line.pop("seconds") is not None for line in lines[:-1] if line["kind"] == "output")
    assert lines == [
        {"kind": "thought", "step": 1, "text": "I look."},
        {"kind": "action", "step": 1, "name": "terminal", "text": "ls"},
        {"kind": "action", "step": 1, "name": "think", "text": '{"thought": "Hm."}'},
        {"kind": "output", "step": 1, "text": "data\n", "exit_code": 0},
        {"kind": "output", "step": 1, "text": "Logged.", "exit_code": None},
        {"kind": "action", "step": 2, "name": "no_such_tool", "text": '{"command": "view", "path": "x"}'},
        {"kind": "output", "step": 2, "text": "There is no such tool.", "exit_code": 1},
        {"kind": "thought", "step": 3, "text": "Done."},
        {"kind": "output", "step": 3, "text": "Stop: enough", "exit_code": 1, "seconds": None},
    ]
    assert translator.steps == 3
