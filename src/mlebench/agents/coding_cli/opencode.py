"""opencode: its settings, and its events as a trajectory."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driver import Event, EventTranslator, Program, drive


class OpenCode(Program):
    name = "opencode"

    def write_settings(self) -> None:
        effort = {"reasoningEffort": self.options.effort} if self.options.effort else {}
        settings = {
            "autoupdate": False,
            "share": "disabled",
            "model": f"gateway/{self.model}",
            "small_model": f"gateway/{self.model}",
            "enabled_providers": ["gateway"],
            "provider": {
                "gateway": {
                    "npm": "@ai-sdk/openai-compatible",  # it is part of the program
                    "name": "gateway",
                    "options": {"baseURL": os.environ["OPENAI_BASE_URL"], "apiKey": "{env:OPENAI_API_KEY}"},
                    "models": {self.model: {"name": self.model, "options": effort}},
                }
            },
            "permission": {"*": "allow", "webfetch": "deny", "websearch": "deny"},
        }
        self._settings.write_text(json.dumps(settings), encoding="utf-8")

    @property
    def _settings(self) -> Path:
        return self.home / "opencode.json"

    def environment(self) -> Mapping[str, str]:
        return {
            "OPENCODE_CONFIG": str(self._settings),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        }

    def command(self) -> list[str]:
        (program,) = Path(os.environ["NPM_DIR"]).glob("opencode-*/bin/opencode")
        # With a title of ours it asks the model for none.
        return [str(program), "run", "--format", "json", "--auto", "--pure", "--thinking", "--title", "competition"]

    def translate(self, event: Event, story: EventTranslator) -> None:
        part = event.get("part") or {}
        if "messageID" in part:
            story.begin_answer(part["messageID"])
        match event.get("type"):
            case "text" | "reasoning":
                story.thought(part["text"])
            case "tool_use":
                self._tool(part, story)
            case "step_finish":
                tokens = part["tokens"]
                cached = tokens["cache"]["read"]
                story.call(
                    self.model,
                    input_tokens=tokens["input"] + cached + tokens["cache"]["write"],
                    cached_tokens=cached,
                    output_tokens=tokens["output"] + tokens["reasoning"],
                    reasoning_tokens=tokens["reasoning"],
                )
            case "error":
                story.fault(_message(event["error"]))

    def _tool(self, part: dict[str, Any], story: EventTranslator) -> None:
        """Its one event for a call comes when the call has ended."""
        state = part["state"]
        story.action(part["callID"], part["tool"], _request(state.get("input") or {}))
        failed = state["status"] == "error"
        code = (state.get("metadata") or {}).get("exit")
        took = state.get("time") or {}
        story.output(
            part["callID"],
            str(state.get("error") if failed else state.get("output")),
            code if isinstance(code, int) else int(failed),
            (took["end"] - took["start"]) / 1000 if "end" in took else None,
        )


def _request(arguments: dict[str, Any]) -> str:
    """The command of a call if it has one, otherwise all of its arguments."""
    command = arguments.get("command")
    return command if isinstance(command, str) else json.dumps(arguments)


def _message(error: dict[str, Any]) -> str:
    data = error.get("data")
    return str((data.get("message") if isinstance(data, dict) else None) or error)


if __name__ == "__main__":
    raise SystemExit(drive(OpenCode))
