"""What the agent can do. An action is a function of the same name; it returns what the model gets to see.

To add one, write a method of Actions and describe it in prompts/system.txt.
"""

import http.client
import json
import os
import re
import select
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

from journal import Journal, shortened

PROMPTS = Path(__file__).parent / "prompts"
SHOWN = 8_000  # characters of an output that the model gets to see
READ = 20_000  # characters of a file that `understand` shows
KEPT = 50_000  # bytes from the beginning and from the end of what a command prints
_BLOCK = re.compile(r"^```[\w+.-]*[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


class ActionError(Exception):
    """The action cannot be carried out; the model is told why."""


def parse(answer: str) -> tuple[str, dict[str, Any]]:
    """The thought and the action of an answer: the first JSON object with a key `action`, whatever surrounds it."""
    decoder = json.JSONDecoder(strict=False)  # models often leave raw line ends in strings
    for begin in (brace.start() for brace in re.finditer(r"\{", answer)):
        try:
            action, end = decoder.raw_decode(answer, begin)
        except (ValueError, RecursionError):
            continue
        if isinstance(action, dict) and isinstance(action.get("action"), str):
            # Models often get escaping wrong; code in a block needs none.
            if action["action"] == "write" and "content" not in action and (block := _BLOCK.search(answer, end)):
                action["content"] = block[1]
            return answer[:begin].strip().removeprefix("Thought:").strip(), action
    raise ActionError('there is no JSON object with the key "action"')


def prompt(name: str, **values: object) -> str:
    return Template((PROMPTS / name).read_text(encoding="utf-8")).substitute(values)


class Actions:
    def __init__(
        self, work: Path, journal: Journal, ask: Callable[[str], str], command_seconds: float, left: Callable[[], float]
    ):
        self._work = work
        self._journal = journal
        self._ask = ask
        self._command_seconds = command_seconds
        self._seconds_left = left
        self._exit_code: int | None = None  # of the last command

    def carry_out(self, step: int, action: dict[str, Any]) -> str:
        """Carry out an action and return the observation. The model gets to read whatever went wrong."""
        begun = time.monotonic()
        self._exit_code = None
        name = action["action"]
        try:
            if name not in NAMES:
                raise ActionError(f"there is no action {name!r}; there are {', '.join(NAMES)} and finish")
            seen = shortened(getattr(self, name)(step, action), SHOWN)
        except (ActionError, OSError, ValueError, TypeError, OverflowError) as error:
            seen = f"Error: {error}" if isinstance(error, ActionError) else f"Error: {type(error).__name__}: {error}"
        seconds = round(time.monotonic() - begun, 3)
        self._journal.note("output", step, text=seen, exit_code=self._exit_code, seconds=seconds)
        return seen

    def list(self, _: int, action: dict[str, Any]) -> str:
        folder = self._path(action, default=".")
        rows = []
        for path in sorted(folder.iterdir())[:500]:
            rows.append(f"{path.name}/" if path.is_dir() else f"{path.name}  {path.lstat().st_size} bytes")
        return "\n".join(rows) or "The folder is empty."

    def read(self, _: int, action: dict[str, Any]) -> str:
        start, count = int(action.get("start", 1)), int(action.get("lines", 200))
        shown = []
        with self._path(action).open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, start=1):
                if number >= start + count:
                    shown.append("… the file continues")
                    break
                if number >= start:
                    shown.append(line.rstrip("\n")[:2000])
        return "\n".join(shown) or f"There is no line {start}."

    def write(self, _: int, action: dict[str, Any]) -> str:
        content = action.get("content")
        if not isinstance(content, str):
            raise ActionError("the content is missing: put it after the object, between lines of three backticks")
        path = self._path(action)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        return f"Wrote {path}, {len(content.splitlines())} lines."

    def edit(self, _: int, action: dict[str, Any]) -> str:
        path, old, new = self._path(action), _text(action, "old"), _text(action, "new")
        content = path.read_text(encoding="utf-8")
        if (count := content.count(old)) != 1:
            raise ActionError(f"`old` must occur exactly once in {path}, but occurs {count} times")
        path.write_text(content.replace(old, new), encoding="utf-8")
        return f"Changed {path}."

    def execute(self, _: int, action: dict[str, Any]) -> str:
        seconds = max(1.0, min(self._command_seconds, self._seconds_left()))
        output, self._exit_code = _run(_text(action, "command"), self._work, seconds)
        ended = f"It was ended after {seconds:.0f} seconds: too long." if self._exit_code is None else ""
        return f"{shortened(output, SHOWN - 200)}\n{ended or f'Exit code {self._exit_code}.'}"

    def understand(self, _: int, action: dict[str, Any]) -> str:
        path = self._path(action)
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(READ)
        facts = {"path": path, "size": path.stat().st_size, "shown": f"{len(text)} characters", "text": text}
        return self._ask(prompt("understand.txt", question=_text(action, "question"), **facts))

    def submit(self, step: int, action: dict[str, Any]) -> str:
        """Submit a file if its format is right and its value is no worse than the last one's."""
        path = self._path(action)
        valid, verdict = _validate(path)
        if not valid:
            return f"Not submitted. {verdict}"
        value, higher = action.get("value"), action.get("higher_is_better", True) is not False
        value = value if isinstance(value, int | float) and abs(value) < 1e300 else None
        if value is not None:
            facts = {"metric": action.get("metric"), "value": value, "higher_is_better": higher}
            self._journal.note("validation", step, **facts)
        before = (self._journal.best or {}).get("value")
        if value is not None and before is not None and (value < before if higher else value > before):
            return f"Not submitted: {value} is worse than {before}, the value of the current submission."
        target = Path(os.environ["SUBMISSION_DIR"]) / "submission.csv"
        # One rename: if time runs out now, the submission is the old one or the new one, never half of it.
        part = target.with_suffix(".part")
        shutil.copyfile(path, part)
        part.replace(target)
        self._journal.take({"path": str(path), "value": value})
        self._journal.note("submission", step, path=str(path))
        return f"Handed in. {verdict}"

    def _path(self, action: dict[str, Any], default: str | None = None) -> Path:
        text = _text(action, "path") if default is None or "path" in action else default
        return self._work / os.path.expandvars(text)


NAMES = ("list", "read", "write", "edit", "execute", "understand", "submit")


def _text(action: dict[str, Any], key: str) -> str:
    if not isinstance(value := action.get(key), str) or (not value and key != "new"):
        raise ActionError(f"`{key}` is missing or is not text")
    return value


def _run(command: str, folder: Path, seconds: float) -> tuple[str, int | None]:
    """What a command prints, and its exit code; None if it was ended because it took too long.

    The output is read as it comes and only part of it is kept: a program that prints forever must not fill memory.
    """
    process = subprocess.Popen(  # noqa: S603
        ["bash", "-c", command],  # noqa: S607
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    deadline = time.monotonic() + seconds
    head, tail, lost = b"", b"", 0
    with process:
        pipe = process.stdout.fileno() if process.stdout else -1
        while time.monotonic() < deadline:
            if not select.select([pipe], [], [], 0.1)[0]:
                if process.poll() is None:
                    continue
                break  # programs it left in the background keep the pipe open
            if not (block := os.read(pipe, 1 << 16)):
                break
            room = KEPT - len(head)
            head, tail = head + block[:room], tail + block[room:]
            lost, tail = lost + max(0, len(tail) - KEPT), tail[-KEPT:]
        try:
            code: int | None = process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            code = None
        _end_all(process.pid)
    middle = f"\n[… {lost} bytes left out …]\n".encode() if lost else b""
    return (head + middle + tail).decode("utf-8", "replace"), code


def _end_all(group: int) -> None:
    """A command may have left programs in the background, which would slow down later commands."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def _validate(path: Path) -> tuple[bool, str]:
    """Whether a submission has the right format, and what is wrong with it. This says nothing about its score."""
    if not (address := os.environ.get("VALIDATOR_URL")):
        return True, "There is no validator here; the format was not checked."
    limit = "mlab-form-boundary"
    head = f'--{limit}\r\nContent-Disposition: form-data; name="file"; filename="submission.csv"\r\n\r\n'
    body = head.encode() + path.read_bytes() + f"\r\n--{limit}--\r\n".encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={limit}"}
    request = urllib.request.Request(address, body, headers)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=300) as answer:
            verdict = json.load(answer)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return True, f"The validator does not answer ({error}); the format was not checked."
    return bool(verdict.get("is_valid")), str(verdict.get("result"))
