"""Claude Code: its settings, and its events as a trajectory."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driver import Event, EventTranslator, Program, drive

MODEL_VARIABLES = (
    "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
)


class ClaudeCode(Program):
    name = "claude-code"

    def environment(self) -> Mapping[str, str]:
        longest = f"{float(os.environ['TIME_LIMIT_SECS']) * 1000:.0f}"
        return {
            **dict.fromkeys(MODEL_VARIABLES, self.model),
            "IS_SANDBOX": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "BASH_MAX_TIMEOUT_MS": longest,  # of one command: it is ten minutes otherwise
        }

    def command(self) -> list[str]:
        (program,) = Path(os.environ["NPM_DIR"]).glob("@anthropic-ai/claude-code-*/claude")
        effort = ["--effort", self.options.effort] if self.options.effort else []
        return [
            str(program),
            "-p",
            *("--output-format", "stream-json", "--verbose", "--include-partial-messages"),
            "--dangerously-skip-permissions",
            *("--disallowedTools", "WebSearch", "WebFetch"),
            *effort,
        ]

    def is_noise(self, event: Event) -> bool:
        return event.get("type") == "stream_event" and event["event"]["type"] == "content_block_delta"

    def translate(self, event: Event, story: EventTranslator) -> None:
        match event.get("type"):
            case "stream_event":
                self._count(event["event"], story)
            case "assistant":
                self._answer(event, story)
            case "user":
                for block in _blocks(event):
                    if block.get("type") == "tool_result":
                        text = _text(block.get("content"))
                        story.output(block["tool_use_id"], text, _exit_code(text, failed=bool(block.get("is_error"))))
            case "result" if event.get("is_error"):
                story.fault(str(event.get("result") or event.get("subtype")))

    def _answer(self, event: Event, story: EventTranslator) -> None:
        if event["message"].get("model") == "<synthetic>":  # the program's own words: an error, which `result` has, too
            return
        story.begin_answer(event["message"]["id"])
        for block in _blocks(event):
            match block.get("type"):
                case "text":
                    story.thought(block["text"])
                case "thinking":
                    story.thought(block["thinking"])
                case "tool_use":
                    story.action(block["id"], block["name"], _command(block["input"]))

    def _count(self, event: Event, story: EventTranslator) -> None:
        """A stream of an answer begins with the tokens of its input, and ends with those of its output."""
        if event["type"] == "message_start":
            self._begun = event["message"]
        elif event["type"] == "message_delta":
            usage = {**self._begun["usage"], **{key: count for key, count in event["usage"].items() if count}}
            cached = usage.get("cache_read_input_tokens") or 0
            story.call(
                self._begun.get("model"),
                input_tokens=usage["input_tokens"] + cached + (usage.get("cache_creation_input_tokens") or 0),
                cached_tokens=cached,
                output_tokens=usage["output_tokens"],
                reasoning_tokens=None,
            )


def _blocks(event: Event) -> list[dict[str, Any]]:
    content = event["message"]["content"]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content or [] if isinstance(part, dict))


def _exit_code(text: str, *, failed: bool) -> int | None:
    """A failed command's output begins with its exit code; other tools have none."""
    first, _, number = text.partition("\n")[0].rpartition(" ")
    if first == "Exit code" and number.isdigit():
        return int(number)
    return 1 if failed else 0


def _command(arguments: dict[str, Any]) -> str:
    """The command of a call if it has one, otherwise all of its arguments."""
    command = arguments.get("command")
    return command if isinstance(command, str) else json.dumps(arguments)


if __name__ == "__main__":
    raise SystemExit(drive(ClaudeCode))
