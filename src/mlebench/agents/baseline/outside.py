"""The agent's contact with the outside: the clock, the trajectory, the validator, and the submission."""

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ATTEMPTS = 3  # to reach the validator
BOUNDARY = "baseline-form-boundary"


class Clock:
    """How much of the time is used. The run's limit is enforced outside, so a tenth is kept in reserve."""

    def __init__(self, seconds: float, limit: float):
        self._began = time.monotonic()
        self._seconds = min(seconds, 0.9 * limit)

    def left(self) -> float:
        return self._began + self._seconds - time.monotonic()

    def spent(self, share: float) -> bool:
        """Whether this share of the time is used up."""
        return self.left() < (1 - share) * self._seconds

    def part(self, share: float) -> "Clock":
        """A separate clock for one piece of work: a share of what is left."""
        return Clock(share * max(self.left(), 0), float("inf"))


class Trajectory:
    """`trajectory.jsonl` among the logs: what was done and why, one JSON object per line."""

    def __init__(self, logs: Path):
        self._path = logs / "trajectory.jsonl"
        self._step = 0

    def write(self, kind: str, **facts: Any) -> None:
        line = {"kind": kind, "time": time.time(), **facts}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{kind}: " + ", ".join(f"{key} {value}" for key, value in facts.items() if key != "step"), flush=True)

    def start(self, agent: str) -> None:
        self.write("start", agent=agent, model=None)

    def thought(self, text: str) -> None:
        self._step += 1
        self.write("thought", step=self._step, text=text)

    def action(self, name: str, text: str) -> None:
        self.write("action", step=self._step, name=name, text=text)

    def validation(self, metric: str, value: float, higher_is_better: bool) -> None:
        self.write("validation", step=self._step, metric=metric, value=value, higher_is_better=higher_is_better)

    def submission(self, path: Path) -> None:
        self.write("submission", step=self._step, path=str(path))

    def end(self, reason: str) -> None:
        self.write("end", reason=reason)


class Submission:
    """`submission.csv`. Only what passed the validator replaces it."""

    def __init__(self, folder: Path, trajectory: Trajectory):
        self._path = folder / "submission.csv"
        self._trajectory = trajectory

    def begin(self, content: bytes) -> None:
        """The first one needs no verdict: it is better than none."""
        self._replace(content)

    def hand_in(self, content: bytes) -> bool:
        """Replace the previous submission; return whether that happened."""
        is_valid, message = validate(content)
        if not is_valid:
            self._trajectory.thought(f"Not submitted: {message}")
            return False
        self._replace(content)
        return True

    def _replace(self, content: bytes) -> None:
        # One rename: if time runs out now, the submission is the old one or the new one, never half of it.
        part = self._path.with_suffix(".part")
        part.write_bytes(content)
        part.replace(self._path)
        self._trajectory.submission(self._path)


def validate(content: bytes) -> tuple[bool | None, str]:
    """Whether a submission has the right format; None if the validator does not answer. Without one, all pass."""
    address = os.environ.get("VALIDATOR_URL")
    if not address:
        return True, "there is no validator here"
    message = ""
    for attempt in range(ATTEMPTS):
        time.sleep(attempt)
        try:
            verdict = _post(f"{address.removesuffix('/validate').rstrip('/')}/validate", content)
            return bool(verdict["is_valid"]), str(verdict.get("result"))
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            message = f"the validator gave no verdict: {error}"
    return None, message


def _post(address: str, content: bytes) -> dict[str, Any]:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="submission.csv"\r\n\r\n'
    body = head.encode() + content + f"\r\n--{BOUNDARY}--\r\n".encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    request = urllib.request.Request(address, body, headers)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=300) as answer:
        return json.load(answer)
