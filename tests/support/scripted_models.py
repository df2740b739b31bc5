"""Scripted models for tests: the real endpoint, in a separate process."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def playing(script: str | list[dict[str, Any]], folder: Path) -> Iterator[str]:
    """Play a script, given by name or as a list of answers, until the block ends; yield its base URL."""
    if not isinstance(script, str):
        path = folder / "script.json"
        path.write_text(json.dumps(script))
        script = str(path)
    command = [sys.executable, "-P", "-m", "mlebench", "dev", "scripted-model", script]
    command += ["--log", str(folder / "requests.jsonl")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def requests(folder: Path) -> list[dict[str, Any]]:
    """What the endpoint was asked, in order."""
    return [json.loads(line)["request"] for line in (folder / "requests.jsonl").read_text().splitlines()]


def act(action: str, text: str = "", **keys: Any) -> dict[str, Any]:
    """An answer with an action, for mlab."""
    return {"text": f"Thought: so be it.\n{json.dumps({'action': action, **keys})}\n{text}"}
