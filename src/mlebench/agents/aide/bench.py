"""What an agent needs from the benchmark: its clock, its model, its texts and its trajectory.

Standard library only. `openhands` shares it.
"""

import json
import os
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESERVE = 0.05  # the share of the time kept for wrapping up, at most a minute


class Clock:
    """How much time the run has left."""

    def __init__(self, limit: float):
        self.limit = limit
        self._end = time.monotonic() + limit - min(60.0, RESERVE * limit)

    def left(self) -> float:
        return self._end - time.monotonic()


class Trajectory:
    """The trajectory of a run, one JSON object per line. Each line is on disk before the next thing happens."""

    def __init__(self, path: Path):
        self._path = path
        self.step = 0

    def tell(self, kind: str, **keys: Any) -> None:
        line = json.dumps({"kind": kind, "time": time.time(), **keys}, default=str)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def tell_step(self, kind: str, **keys: Any) -> None:
        self.tell(kind, step=self.step, **keys)


def require_endpoint(env: Mapping[str, str]) -> tuple[str, str]:
    """The gateway's address and this run's token. There is no other way to reach a model."""
    if not env.get("OPENAI_BASE_URL"):
        raise SystemExit("there is no model: run with `--network model --model NAME`")
    return env["OPENAI_BASE_URL"], env.get("OPENAI_API_KEY", "none")


def require_model(named: str | None, env: Mapping[str, str]) -> str:
    """The requested model, or the first one that this run may use."""
    if model := named or env.get("MLEBENCH_MODEL"):
        return model
    raise SystemExit("no model is named: run with `--model NAME`")


def is_budget(error: Exception) -> bool:
    """Whether the gateway refused a call because the run's budget is used up. Some clients pass on only its text."""
    message = f"{error} {getattr(error, 'body', '')}"
    return "budget_exceeded" in message or "This run's budget is" in message


def fill(prompt: Path, **values: str) -> str:
    """A prompt with `{name}` replaced by values. Other braces stay as they are."""
    text = prompt.read_text(encoding="utf-8")
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), text)


def task_texts(env: Mapping[str, str]) -> dict[str, str]:
    """The benchmark's instructions and the competition's description."""
    description = Path(env["DATA_DIR"]) / "description.md"
    return {
        "instructions": Path(env["INSTRUCTIONS"]).read_text(encoding="utf-8").strip(),
        "description": description.read_text(encoding="utf-8").strip() if description.is_file() else "",
    }


def duration(seconds: float) -> str:
    """Words for a time limit, rounded down."""
    for unit, size in (("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def format_fault(submission: Path) -> str | None:
    """What is wrong with the format of a submission; None if nothing is, or if it cannot be checked."""
    checker = Path(os.environ["INSTRUCTIONS"]).parent / "validate_submission.sh"
    done = subprocess.run(  # noqa: S603
        ["sh", str(checker), str(submission)],  # noqa: S607
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return done.stdout.strip() if done.returncode == 1 else None
