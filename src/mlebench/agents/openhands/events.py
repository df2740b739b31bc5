"""Turns OpenHands' events into trajectory lines. Works on events as dictionaries; standard library only."""

import json
import time
from typing import Any

from bench import Trajectory

LONGEST = 20_000  # characters of one output
TERMINAL = {"command", "is_input", "timeout", "reset", "security_risk", "summary"}  # arguments of its tool


class EventTranslator:
    """A step is one answer of the model, with all the tool calls in it."""

    def __init__(self, trajectory: Trajectory):
        self._trajectory = trajectory
        self._answers: set[str] = set()
        self._is_new = False
        self._began: dict[str, float] = {}  # call: when it began

    @property
    def steps(self) -> int:
        return len(self._answers)

    def enter(self, event: dict[str, Any]) -> None:
        """Note whether an event begins a step: one answer may call several tools."""
        if event.get("kind") == "ActionEvent" or is_message(event):
            answer = str(event.get("llm_response_id") or event.get("id"))
            self._is_new = answer not in self._answers
            self._answers.add(answer)
            self._trajectory.step = len(self._answers)

    def event(self, event: dict[str, Any]) -> None:
        match event.get("kind"):
            case "ActionEvent":
                self._action(event)
            case "MessageEvent" if is_message(event):
                self._thought(event, (event.get("llm_message") or {}).get("content"))
            case "ObservationEvent":
                observation = event.get("observation") or {}
                code = observation.get("exit_code")
                self._output(event, texts(observation.get("content")), code if isinstance(code, int) else None)
            case "AgentErrorEvent" | "UserRejectObservation":
                self._output(event, str(event.get("error") or event.get("rejection_reason")), 1)
            case "ConversationErrorEvent":
                self._output(event, f"{event.get('code')}: {event.get('detail')}", 1)

    def call(self, usage: dict[str, Any], seconds: float | None, cost: float | None) -> None:
        """What an answer of the model cost, as OpenHands counts it."""
        self._trajectory.tell_step(
            "call",
            model=usage.get("model"),
            input_tokens=usage.get("prompt_tokens"),
            cached_tokens=usage.get("cache_read_tokens"),
            output_tokens=usage.get("completion_tokens"),
            reasoning_tokens=usage.get("reasoning_tokens"),
            cost=cost,
            seconds=seconds,
        )

    def _action(self, event: dict[str, Any]) -> None:
        if self._is_new:
            self._thought(event, event.get("thought"))
        call = event.get("tool_call") or {}
        self._began[str(event.get("tool_call_id"))] = time.monotonic()
        self._trajectory.tell_step("action", name=event.get("tool_name"), text=command(call.get("arguments")))

    def _thought(self, event: dict[str, Any], content: Any) -> None:
        text = "\n".join(part for part in (event.get("reasoning_content") or "", texts(content)) if part)
        if text:
            self._trajectory.tell_step("thought", text=text[:LONGEST])

    def _output(self, event: dict[str, Any], text: str, exit_code: int | None) -> None:
        began = self._began.pop(str(event.get("tool_call_id")), None)
        seconds = None if began is None else round(time.monotonic() - began, 3)
        self._trajectory.tell_step("output", text=text[-LONGEST:], exit_code=exit_code, seconds=seconds)


def is_message(event: dict[str, Any]) -> bool:
    """Whether the model said something and called no tool."""
    return event.get("kind") == "MessageEvent" and event.get("source") == "agent"


def texts(content: Any) -> str:
    """The text in a list of parts, some of which may be images."""
    if isinstance(content, str):
        return content
    parts = [part.get("text") for part in content or [] if isinstance(part, dict)]
    return "\n".join(part for part in parts if isinstance(part, str))


def command(arguments: Any) -> str:
    """The command of a call if it has one, otherwise all of its arguments."""
    try:
        parsed = json.loads(arguments)
    except (TypeError, ValueError):
        return str(arguments)
    if isinstance(parsed, dict) and isinstance(parsed.get("command"), str) and set(parsed) <= TERMINAL:
        return parsed["command"]
    return json.dumps(parsed)
