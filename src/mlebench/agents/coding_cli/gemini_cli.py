"""Gemini CLI: its settings, and its events as a trajectory."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driver import Event, EventTranslator, Program, drive


class GeminiCli(Program):
    name = "gemini-cli"
    _text = ""  # of the answer so far

    def write_settings(self) -> None:
        folder = self.home / ".gemini"
        folder.mkdir(exist_ok=True)
        settings: dict[str, Any] = {
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "tools": {"exclude": ["google_web_search", "web_fetch"]},
        }
        if self.options.effort:
            thinking = {"thinkingConfig": {"thinkingLevel": self.options.effort.upper()}}
            override = {"match": {}, "modelConfig": {"generateContentConfig": thinking}}
            settings["modelConfigs"] = {"customOverrides": [override]}
        (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")

    def environment(self) -> Mapping[str, str]:
        return {"GEMINI_MODEL": self.model, "GEMINI_CLI_TRUST_WORKSPACE": "true", "NO_BROWSER": "true"}

    def command(self) -> list[str]:
        (node,) = Path(os.environ["NPM_DIR"]).glob("node-*/bin/node")
        program = Path(os.environ["NPM_DIR"]) / "@google/gemini-cli/bundle/gemini.js"
        return [str(node), str(program), "--model", self.model, "--yolo", "--output-format", "stream-json"]

    def translate(self, event: Event, story: EventTranslator) -> None:
        match event.get("type"):
            case "init":
                self._text = ""
            case "message" if event.get("role") == "assistant":
                story.begin_answer()
                self._say(event, story)
            case "tool_use":
                self._finish_text(story)
                story.begin_answer()
                story.action(event["tool_id"], event["tool_name"], _request(event.get("parameters") or {}))
            case "tool_result":
                failed = event.get("status") == "error"
                text = str(event.get("output") or (event.get("error") or {}).get("message") or "")
                story.output(event["tool_id"], text, 1 if failed else None)  # a command that failed is a success here
                story.end_answer()
            case "error":
                story.fault(str(event.get("message")))
            case "result":
                self._finish_text(story)
                self._end(event, story)

    def _say(self, event: Event, story: EventTranslator) -> None:
        """Texts come in pieces."""
        self._text += event["content"]
        if not event.get("delta"):
            self._finish_text(story)

    def _finish_text(self, story: EventTranslator) -> None:
        story.thought(self._text)
        self._text = ""

    def _end(self, event: Event, story: EventTranslator) -> None:
        stats = event.get("stats") or {}
        story.call(
            self.model,
            input_tokens=stats.get("input_tokens"),
            cached_tokens=stats.get("cached"),
            output_tokens=stats.get("output_tokens"),
            reasoning_tokens=None,
        )
        if event.get("status") == "error":
            story.fault(str((event.get("error") or {}).get("message")))


def _request(arguments: dict[str, Any]) -> str:
    """The command of a call if it has one, otherwise all of its arguments."""
    command = arguments.get("command")
    return command if isinstance(command, str) else json.dumps(arguments)


if __name__ == "__main__":
    raise SystemExit(drive(GeminiCli))
