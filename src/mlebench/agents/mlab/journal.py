"""Writes down the conversation, so that a restarted agent can continue, and the trajectory, for readers.

Both are files of JSON lines, appended to as things happen: an agent that is killed loses the last line at most.
"""

import json
import time
from pathlib import Path
from typing import Any

Message = dict[str, str]
OLD = 400  # characters kept of an old observation when the conversation is too long


class Journal:
    def __init__(self, folder: Path):
        self._history = folder / "history.jsonl"
        self._trajectory = folder / "trajectory.jsonl"
        self.messages: list[Message] = []
        self.best: dict[str, Any] | None = None  # the last submission that was accepted
        for line in _lines(self._history):
            if "best" in line:
                self.best = line["best"]
            else:
                self.messages.append(line)

    @property
    def steps(self) -> int:
        """How many times the model has answered."""
        return sum(message["role"] == "assistant" for message in self.messages)

    def say(self, role: str, content: str) -> None:
        """Add a message to the conversation. Providers refuse empty ones."""
        self.messages.append({"role": role, "content": content or "(nothing)"})
        _append(self._history, self.messages[-1])

    def take(self, best: dict[str, Any]) -> None:
        self.best = best
        _append(self._history, {"best": best})

    def note(self, kind: str, step: int | None = None, **facts: Any) -> None:
        """Add a line to the trajectory; docs/reference/trajectories.md describes the kinds."""
        _append(self._trajectory, {"kind": kind, "time": time.time(), "step": step, **facts})

    def recent(self, most: int) -> list[Message]:
        """The conversation, with the oldest observations shortened until it has at most `most` characters.

        The first message holds the task. The model's own words stay: without them it would repeat itself.
        """
        messages = [dict(message) for message in self.messages]
        size = sum(len(message["content"]) for message in messages)
        for message in messages[1:-1]:
            if size <= most:
                break
            if message["role"] == "user":
                short = shortened(message["content"], OLD)
                size -= len(message["content"]) - len(short)
                message["content"] = short
        return messages


def shortened(text: str, most: int) -> str:
    """Cut the middle out of a long text: the beginning says what it is, and errors come at the end."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n[… {len(text) - most} characters left out …]\n{text[-(most // 2) :]}"


def _lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file, without a last line that was cut off."""
    if not path.exists():
        return []
    objects = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            objects.append(json.loads(line))
        except ValueError:
            continue
    return objects


def _append(path: Path, line: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)  # a command may have removed the folder
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
