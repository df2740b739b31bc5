"""Codex: its settings, and its events as a trajectory."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driver import Event, EventTranslator, Program, drive

TEXTS = {"agent_message", "reasoning"}


class Codex(Program):
    name = "codex"
    _has_said = False  # whether the last thing was a message

    def write_settings(self) -> None:
        """It ignores OPENAI_BASE_URL: only a provider of its own in its settings leads elsewhere."""
        folder = self.home / ".codex"
        folder.mkdir(exist_ok=True)
        values = {
            "model": self.model,
            "model_provider": "gateway",
            "web_search": "disabled",
            "check_for_update_on_startup": False,
            "allow_login_shell": False,  # /etc/profile of an image would set another PATH
            **({"model_reasoning_effort": self.options.effort} if self.options.effort else {}),
            "analytics.enabled": False,
            "history.persistence": "none",
            "model_providers.gateway.name": "gateway",
            "model_providers.gateway.base_url": os.environ["OPENAI_BASE_URL"],
            "model_providers.gateway.env_key": "OPENAI_API_KEY",
            "model_providers.gateway.wire_api": "responses",
        }
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in values.items()]  # such values are the same in TOML
        (folder / "config.toml").write_text("".join(lines), encoding="utf-8")

    def environment(self) -> Mapping[str, str]:
        return {"CODEX_HOME": str(self.home / ".codex")}

    def command(self) -> list[str]:
        (program,) = Path(os.environ["NPM_DIR"]).glob("@openai/codex/vendor/*/bin/codex")
        # Its own sandbox is off: it is in one, which allows no other inside.
        return [str(program), "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]

    def translate(self, event: Event, story: EventTranslator) -> None:
        match event.get("type"):
            case "item.started":
                self._action(event["item"], story)
            case "item.completed":
                self._result(event["item"], story)
            case "turn.completed":
                usage = event["usage"]
                story.call(
                    self.model,
                    input_tokens=usage.get("input_tokens"),
                    cached_tokens=usage.get("cached_input_tokens"),
                    output_tokens=usage.get("output_tokens"),
                    reasoning_tokens=usage.get("reasoning_output_tokens"),
                )
            case "turn.failed":
                story.fault(_message(event["error"]))
            case "error":
                story.fault(_message(event))

    def _action(self, item: dict[str, Any], story: EventTranslator) -> None:
        if item["type"] not in TEXTS | {"error", "todo_list"}:
            story.begin_answer()
            story.action(item["id"], item["type"], _request(item))

    def _result(self, item: dict[str, Any], story: EventTranslator) -> None:
        match item["type"]:
            case "agent_message":
                if self._has_said:  # an answer has one message; a call that Codex refuses is not among the events
                    story.end_answer()
                self._has_said = True
                story.begin_answer()
                story.thought(item["text"])
                return
            case "reasoning":
                story.begin_answer()
                story.thought(item["text"])
            case "todo_list":
                story.thought(
                    "\n".join(f"[{'x' if todo['completed'] else ' '}] {todo['text']}" for todo in item["items"])
                )
            case "error":
                print(item["message"], flush=True)  # a warning: faults that end a turn are `turn.failed`
            case "command_execution":
                story.output(item["id"], item["aggregated_output"], item["exit_code"])
                story.end_answer()
            case _:
                story.output(item["id"], _request(item), 1 if item.get("status") == "failed" else 0)
                story.end_answer()
        self._has_said = False


def _request(item: dict[str, Any]) -> str:
    """The command of an item if it has one, otherwise all that it says."""
    if isinstance(item.get("command"), str):
        return item["command"]
    return json.dumps({key: value for key, value in item.items() if key not in ("id", "type", "status")})


def _message(error: dict[str, Any]) -> str:
    return str(error.get("message") or error)


if __name__ == "__main__":
    raise SystemExit(drive(Codex))
