"""Runs a coding command line on a competition, writes its events as a trajectory, starts it again if it stops early.

Standard library only. The command lines differ in their settings and events, which a `Program` knows.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from bench import (
    Clock,
    Trajectory,
    duration,
    fill,
    format_fault,
    is_budget,
    require_endpoint,
    require_model,
    task_texts,
)

ENV = os.environ
HERE = Path(__file__).parent
SUBMISSION = Path(ENV.get("SUBMISSION_DIR", "/home/submission")) / "submission.csv"
LONGEST = 20_000  # characters of one output in the trajectory
MOST_PACKAGES = 100  # named in the prompt
UNNAMED = "unnamed"  # an answer
GRACE = 5.0  # seconds between asking a program to end and killing it

Event = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """The kwargs of config.yaml and the options of the run."""

    restarts: int = 3  # after the first start
    turns: int = 0  # answers of the model, over all starts; 0: any number
    effort: str = ""
    extra: str = ""  # further arguments, quoted as in a shell
    prompt_file: str = "task.txt"
    model: str = ""

    @classmethod
    def read(cls, words: Sequence[str]) -> "Options":
        """Not argparse: the value of `extra` begins with a dash."""
        values: dict[str, Any] = {}
        for flag, value in zip(words[::2], words[1::2], strict=True):
            name = flag.removeprefix("--").replace("-", "_")
            if name != "version":  # what was installed has it
                values[name] = int(float(value)) if name in ("restarts", "turns") else value
        return cls(**values)


class EventTranslator:
    """Writes the trajectory. A step is an answer of the model, with all that it does."""

    def __init__(self, trajectory: Trajectory):
        self._trajectory = trajectory
        self._answer: str | None = None
        self._began: dict[str, float] = {}  # call: when it began
        self._submitted: float | None = None
        self.last_fault = ""  # of this start

    @property
    def steps(self) -> int:
        return self._trajectory.step

    def begin_start(self) -> None:
        self._answer, self.last_fault = None, ""

    def begin_answer(self, answer: str = UNNAMED) -> None:
        """Begin a step, unless this answer has begun. Not every program names its answers."""
        if answer != self._answer:
            self._answer = answer
            self._trajectory.step += 1

    def end_answer(self) -> None:
        self._answer = None

    def thought(self, text: str) -> None:
        if text.strip():
            self._trajectory.tell_step("thought", text=text[:LONGEST])

    def action(self, call: str, name: str, text: str) -> None:
        self._began[call] = time.monotonic()
        self._trajectory.tell_step("action", name=name, text=text)

    def output(self, call: str, text: str, exit_code: int | None, seconds: float | None = None) -> None:
        """Without `seconds` it took as long as since its action."""
        began = self._began.pop(call, None)
        if seconds is None and began is not None:
            seconds = round(time.monotonic() - began, 3)
        self._trajectory.tell_step("output", text=text[-LONGEST:], exit_code=exit_code, seconds=seconds)
        written = SUBMISSION.stat().st_mtime if SUBMISSION.is_file() else None
        if written is not None and written != self._submitted:
            self._submitted = written
            self._trajectory.tell_step("submission", path=str(SUBMISSION))

    def call(self, model: str | None, **tokens: int | None) -> None:
        """The tokens of an answer, or of all answers of a start if the program says no more."""
        self._trajectory.tell_step("call", model=model, **tokens, cost=None, seconds=None)

    def fault(self, text: str) -> None:
        """What the program says went wrong; some say it twice."""
        if text != self.last_fault:
            self.last_fault = text
            self._trajectory.tell_step("output", text=text[-LONGEST:], exit_code=None, seconds=None)


class Program(ABC):
    """A coding command line."""

    name: str

    def __init__(self, options: Options, model: str, home: Path):
        self.options = options
        self.model = model
        self.home = home

    def write_settings(self) -> None:  # noqa: B027 some need none
        """Write the program's files of settings below `home`."""

    def environment(self) -> Mapping[str, str]:
        """Return variables beyond those of the run."""
        return {}

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command that reads a prompt from its standard input and writes its events, without `extra`."""

    @abstractmethod
    def translate(self, event: Event, story: EventTranslator) -> None:
        """Write what an event says to the trajectory."""

    def is_noise(self, event: Event) -> bool:  # noqa: ARG002
        """Whether an event only repeats parts of another one, and need not be kept."""
        return False


def drive(kind: type[Program]) -> int:
    """Run the program until it has submitted, or time, turns or restarts are used up; return the exit code."""
    options = Options.read(sys.argv[1:])
    clock = Clock(float(ENV["TIME_LIMIT_SECS"]))
    require_endpoint(ENV)
    model = require_model(options.model, ENV)
    trajectory = Trajectory(Path(ENV["LOGS_DIR"]) / "trajectory.jsonl")
    trajectory.tell("start", agent=kind.name, model=model)
    program = kind(options, model, Path(ENV["HOME"]))
    program.write_settings()
    reason, code, starts = _starts(program, clock, trajectory)
    trajectory.tell("end", reason=reason, starts=starts)
    print(f"the end: {reason}", flush=True)
    return code


def _starts(program: Program, clock: Clock, trajectory: Trajectory) -> tuple[str, int, int]:
    """Return why it ended, the exit code, and how often the program was started."""
    story = EventTranslator(trajectory)
    task, start = _task(program.options, clock), 1
    prompt = task
    while True:
        run = _Start(program, prompt, story, clock, start)
        code = run.wait()
        missing = _missing()
        if run.cut_off:
            return run.cut_off, 0, start
        fault = story.last_fault or f"exit code {code}"
        if is_budget(Exception(fault)):
            return f"budget: {fault}", 0, start
        if not missing:
            return f"the program failed: {fault}" if code else "finished", 0, start
        if start > program.options.restarts:
            return (f"the program failed: {fault}", 1, start) if code else ("the model stopped", 0, start)
        start += 1
        prompt = f"{task}\n\n{fill(HERE / 'again.txt', missing=missing, left=duration(max(0.0, clock.left())))}"
        trajectory.tell("restart", start=start, text=missing)
        print(f"start {start}: {missing}", flush=True)


class _Start:
    """One process of the program."""

    def __init__(self, program: Program, prompt: str, story: EventTranslator, clock: Clock, number: int):
        self._program, self._story, self._clock = program, story, clock
        self.cut_off: str | None = None  # why we ended it
        story.begin_start()
        logs = Path(ENV["LOGS_DIR"])
        said, self._events = logs / f"prompt-{number}.txt", logs / f"events-{number}.jsonl"
        said.write_text(prompt, encoding="utf-8")
        command = [*program.command(), *shlex.split(program.options.extra)]
        with said.open("rb") as stdin:
            self._process = subprocess.Popen(  # noqa: S603
                command,
                cwd=ENV["CODE_DIR"],
                env={**ENV, **program.environment()},
                stdin=stdin,
                stdout=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait(self) -> int:
        """Wait until it has ended, or end it when time is up; return its exit code."""
        try:
            self._process.wait(max(0.0, self._clock.left()))
        except subprocess.TimeoutExpired:
            self._end("time")
        self._reader.join(GRACE)  # a program in the background may hold the pipe open
        return self._process.wait()

    def _end(self, reason: str) -> None:
        self.cut_off = self.cut_off or reason
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE)
                return

    def _read(self) -> None:
        turns = self._program.options.turns
        if self._process.stdout is None:
            return
        with self._events.open("a", encoding="utf-8") as events:
            for line in self._process.stdout:
                try:
                    event = json.loads(line)
                except ValueError:
                    print(line, end="", flush=True)
                    continue
                if not isinstance(event, dict):
                    continue
                if not self._program.is_noise(event):
                    events.write(line)
                    events.flush()
                self._translate(event)
                if turns and self._story.steps > turns:
                    self._end("turns")

    def _translate(self, event: Event) -> None:
        """Another version of the program may have other events: one that we cannot read must not end the run."""
        try:
            self._program.translate(event, self._story)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            print(f"an event was not understood ({type(error).__name__}: {error})", flush=True)


def _missing() -> str | None:
    """What to tell a program that stopped too early; None if it is done."""
    if not SUBMISSION.is_file():
        return f"There is no {SUBMISSION} yet."
    if fault := format_fault(SUBMISSION):
        return f"{SUBMISSION} has the wrong format: {fault}"
    return None


def _task(options: Options, clock: Clock) -> str:
    return fill(
        HERE / options.prompt_file,
        code=ENV["CODE_DIR"],
        submission=str(SUBMISSION),
        sample=ENV.get("SAMPLE_SUBMISSION", ""),
        limit=duration(clock.limit),
        turns=f" and at most {options.turns} answers of yours" if options.turns else "",
        hardware=_hardware(),
        packages=_packages(),
        **task_texts(ENV),
    ).strip()


def _hardware() -> str:
    parts = [f"{len(os.sched_getaffinity(0))} CPU cores"]
    if memory := _memory():
        parts.append(f"{memory >> 30} GB of memory" if memory >= 2 << 30 else f"{memory >> 20} MB of memory")
    return ", ".join([*parts, _gpus() or "no GPU"])


def _memory() -> int | None:
    """The limit, or what the machine has."""
    with contextlib.suppress(OSError, ValueError):
        return int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
    with contextlib.suppress(OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _gpus() -> str:
    ask = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(ask, capture_output=True, text=True, errors="replace", timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""
    return "; ".join(done.stdout.strip().splitlines()) if done.returncode == 0 else ""


def _packages() -> str:
    """What `python3` can import, and whether more can be installed."""
    names = sorted(
        {str(distribution.name) for distribution in metadata.distributions() if distribution.name}, key=str.lower
    )
    listed = ", ".join(names[:MOST_PACKAGES]) + (", …" if len(names) > MOST_PACKAGES else "")
    index = ENV.get("PIP_INDEX_URL")
    more = "`pip install` gets others from a local index." if index else "Nothing can be downloaded or installed."
    return f"`python3` has {listed or 'only its standard library'}. {more}"
