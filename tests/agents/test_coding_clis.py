"""Coding command lines: their events as a trajectory, their starts, and the real programs in sandboxes.

The recorded events are what the real programs wrote, in bubblewrap, when the model said what `recorded_script` says.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.coding_clis import AGENTS, SUBMIT, recorded_script, shell
from support.real_agents import (
    TWINS,
    events_of,
    on,
    play,
    prepared,
    real,
    require_better_than_the_sample,
    require_events,
    the_end,
    with_programs,
)
from support.records import report_of, usage_of
from support.run_fixtures import Mlebench
from support.scripted_models import requests

from mlebench.core import paths
from mlebench.records.run_groups import Run
from mlebench.registry import Registry

Play = Callable[..., list[Run]]
Lines = list[dict[str, Any]]
MODULES = {agent: agent.replace("-", "_") for agent in AGENTS}
RECORDED = Path(__file__).parent / "recorded_events"
pytestmark = [pytest.mark.xdist_group("coding_clis"), pytest.mark.timeout(1800)]


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], ModuleType]]:
    """Import files of the agents, which find each other on the path."""
    folders = [str(paths.agents_dir() / name) for name in ("aide", "coding_cli")]
    monkeypatch.setattr(sys, "path", [*folders, *sys.path])
    yield import_module
    for name in ("bench", "driver", *MODULES.values()):
        sys.modules.pop(name, None)


def translated(agent: str, modules: Callable[[str], ModuleType], tmp_path: Path) -> Lines:
    """The trajectory that the recorded events give, without times."""
    driver, program = modules("driver"), modules(MODULES[agent])
    trajectory = tmp_path / "trajectory.jsonl"
    story = driver.EventTranslator(driver.Trajectory(trajectory))
    (kind,) = (each for each in vars(program).values() if isinstance(each, type) and getattr(each, "name", "") == agent)
    translator = kind(driver.Options(), "scripted", tmp_path)
    for line in (RECORDED / f"{agent}.jsonl").read_text().splitlines():
        translator.translate(json.loads(line), story)
    lines = [json.loads(line) for line in trajectory.read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in ("time", "seconds")} for line in lines]


@pytest.mark.parametrize("agent", AGENTS)
def test_recorded_events_become_a_trajectory(agent: str, modules: Callable[[str], ModuleType], tmp_path: Path) -> None:
    lines = translated(agent, modules, tmp_path)
    said = [(line["step"], line["text"]) for line in lines if line["kind"] == "thought"]
    assert said == [(1, "I look around."), (2, "I search."), (3, "I submit.")]
    commands = [line["text"] for line in lines if line["kind"] == "action"]
    assert "echo seen; exit 3" in commands[0]
    assert SUBMIT in commands[-1]
    first, *_, fault = (line for line in lines if line["kind"] == "output")
    assert (first["exit_code"], first["step"]) == (None if agent == "gemini-cli" else 3, 1), (
        "Gemini CLI does not say it"
    )
    assert "seen" in first["text"]
    assert "No more." in fault["text"]
    assert sum("No more." in str(line.get("text")) for line in lines) == 1
    refused = [line for line in lines if line["kind"] == "output" and "WebSearch" in line["text"]]
    assert bool(refused) == (agent != "codex"), "Codex does not report a call that it refuses"
    if agent not in ("codex", "gemini-cli"):  # which count the tokens of a whole start
        calls = [line for line in lines if line["kind"] == "call"]
        assert len(calls) == 3
        counted = {key: calls[0][key] for key in ("input_tokens", "cached_tokens", "output_tokens", "step")}
        assert counted == {"input_tokens": 1000, "cached_tokens": 200, "output_tokens": 50, "step": 1}


# A coding command line as small as can be. Its events are {"say": …}, {"run": …, "output": …} and {"fault": …}.
SMALL = """
import sys
from driver import Program, drive

class Small(Program):
    name = "small"

    def command(self):
        return [sys.executable, {program!r}]

    def translate(self, event, story):
        story.begin_answer(str(event.get("answer", "only")))
        if "say" in event:
            story.thought(event["say"])
        if "run" in event:
            story.action("1", "shell", event["run"])
            story.output("1", event["output"], 0)
        if "fault" in event:
            story.fault(event["fault"])

raise SystemExit(drive(Small))
"""
HELPERS = """
import json, os, sys, time
prompt = sys.stdin.read()
def tell(**event):
    print(json.dumps(event), flush=True)
def submit(text="id,x\\n"):
    open(os.environ["SUBMISSION_DIR"] + "/submission.csv", "w").write(text)
"""
CHECKER = "grep -q wrong \"$1\" && echo 'The column x is wrong.' && exit 1; exit 0\n"


class Driven:
    """Runs the driver with a program, and reads what it left."""

    def __init__(self, home: Path):
        self.home = home
        for name in ("agent", "submission", "logs", "code", "data"):
            (home / name).mkdir(parents=True)
        (home / "instructions.txt").write_text("Do your best.")
        (home / "data/description.md").write_text("Guess x.")
        (home / "validate_submission.sh").write_text(CHECKER)
        for file in ("aide/bench.py", "coding_cli/driver.py", "coding_cli/task.txt", "coding_cli/again.txt"):
            shutil.copy(paths.agents_dir() / file, home / "agent")

    def __call__(self, program: str, *options: str, seconds: float = 60, code: int = 0) -> Lines:
        (self.home / "program.py").write_text(HELPERS + program)
        (self.home / "agent/small.py").write_text(SMALL.replace("{program!r}", repr(str(self.home / "program.py"))))
        env = {f"{name.upper()}_DIR": str(self.home / name) for name in ("submission", "logs", "code", "data")}
        env |= {"HOME": str(self.home), "INSTRUCTIONS": str(self.home / "instructions.txt"), "PATH": os.environ["PATH"]}
        env |= {"TIME_LIMIT_SECS": str(seconds), "MLEBENCH_MODEL": "m", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
        command = [sys.executable, str(self.home / "agent/small.py"), *options]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return [json.loads(line) for line in (self.home / "logs/trajectory.jsonl").read_text().splitlines()]

    def prompt(self, start: int) -> str:
        return (self.home / f"logs/prompt-{start}.txt").read_text()


@pytest.fixture
def driven(tmp_path: Path) -> Driven:
    return Driven(tmp_path / "home")


def of_kind(lines: Lines, kind: str) -> Lines:
    return [line for line in lines if line["kind"] == kind]


def test_a_program_that_stops_early_is_started_again_with_what_is_missing(driven: Driven) -> None:
    lines = driven(
        "if 'wrong format' in prompt: submit(); tell(answer=3, run='fix', output='fixed')\n"
        "elif 'yet.' in prompt: submit('wrong'); tell(answer=2, say='Done.')\n"
        "else: tell(answer=1, say='What do you think?')\n"
    )
    missing = [line["text"] for line in of_kind(lines, "restart")]
    assert [line["start"] for line in of_kind(lines, "restart")] == [2, 3]
    assert missing[0].startswith("There is no")
    assert missing[1].endswith("has the wrong format: The column x is wrong.")
    assert [driven.prompt(start).count("You have started before") for start in (1, 2, 3)] == [0, 1, 1]
    assert missing[1] in driven.prompt(3)
    assert "Guess x." in driven.prompt(3)
    assert lines[-1] | {"time": 0} == {"kind": "end", "time": 0, "reason": "finished", "starts": 3}
    assert [line["step"] for line in of_kind(lines, "submission")] == [3]


def test_it_is_started_only_as_often_as_asked_for(driven: Driven) -> None:
    lines = driven("tell(say='No.')", "--restarts", "1")
    assert (lines[-1]["reason"], lines[-1]["starts"]) == ("the model stopped", 2)


def test_a_program_that_fails_without_a_submission_makes_the_run_fail(driven: Driven) -> None:
    lines = driven("tell(fault='Nobody answers.'); sys.exit(3)", "--restarts", "0", code=1)
    assert lines[-1]["reason"] == "the program failed: Nobody answers."


def test_a_fault_after_a_submission_does_not_spoil_it(driven: Driven) -> None:
    lines = driven("submit(); tell(fault='Gone.'); sys.exit(3)")
    assert (lines[-1]["reason"], lines[-1]["starts"]) == ("the program failed: Gone.", 1)


def test_a_budget_that_is_used_up_ends_the_run(driven: Driven) -> None:
    lines = driven("tell(fault='403 budget_exceeded'); sys.exit(1)")
    assert (lines[-1]["reason"], lines[-1]["starts"]) == ("budget: 403 budget_exceeded", 1)


def test_time_ends_a_program_and_what_it_started(driven: Driven) -> None:
    program = "import subprocess; child = subprocess.Popen(['sleep', '600']); tell(say=str(child.pid)); time.sleep(600)"
    lines = driven(program, seconds=4)
    assert lines[-1]["reason"] == "time"
    (child,) = (int(line["text"]) for line in of_kind(lines, "thought"))
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_turns_end_a_program(driven: Driven) -> None:
    endless = "for answer in range(10**6): tell(answer=answer, say=str(answer)); time.sleep(0.01)"
    lines = driven(endless, "--turns", "3")
    assert (lines[-1]["reason"], lines[-1]["starts"]) == ("turns", 1)
    assert "and at most 3 answers of yours." in driven.prompt(1)


def test_unreadable_events_do_not_end_the_run(driven: Driven) -> None:
    lines = driven("print('no JSON'); print('[]'); tell(run='x'); tell(say=3); tell(say='Well.'); submit()")
    assert [line["text"] for line in of_kind(lines, "thought")] == ["Well."]
    assert lines[-1]["reason"] == "finished"


def test_own_prompts_and_arguments(driven: Driven) -> None:
    (driven.home / "agent/mine.txt").write_text("Enter {submission} within {limit}. {hardware}")
    lines = driven(
        "tell(say=prompt + ' '.join(sys.argv[1:])); submit()",
        *("--prompt-file", "mine.txt", "--extra", "--flag 'two words'", "--version", "1.2"),
    )
    (said,) = (line["text"] for line in of_kind(lines, "thought"))
    assert said.startswith(f"Enter {driven.home}/submission/submission.csv within 60 seconds. ")
    assert "CPU core" in said
    assert said.endswith("--flag two words")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_script_ships_for_each(agent: str) -> None:
    from mlebench.gateway.scripted.script import read_script, shipped

    assert agent in shipped()
    assert read_script(agent)


# The real programs


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return prepared(tmp_path_factory)


@pytest.fixture
def cli(
    registry: Registry, mlebench: Mlebench, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Play]:
    def of(agent: str) -> Play:
        folder = with_programs(agent, tmp_path_factory)
        api = ["--provider", "google"] if agent == "gemini-cli" else []
        return lambda script, *options: play(mlebench, registry, folder, tmp_path, agent, script, *api, *options)

    return of


@real
@pytest.mark.parametrize("agent", AGENTS)
def test_three_twins(agent: str, cli: Callable[[str], Play], registry: Registry, tmp_path: Path) -> None:
    runs = cli(agent)(agent, *on(*TWINS))
    assert len(runs) == 3
    for run in runs:
        require_better_than_the_sample(run, registry)
        require_events(run, "start", "thought", "action", "output", "submission", "end")
        assert "finished starts: 1" in the_end(run)
        assert (run.paths.code / "solve.py").is_file()
        assert usage_of(run).calls == 3, "it asks for nothing else"
    asked = requests(tmp_path)
    assert {request.get("model") for request in asked} <= {"scripted", None}, "Gemini's API has it in the path"
    assert "Only /home/submission/submission.csv is graded" in str(asked[-1])


@real
@pytest.mark.parametrize("agent", AGENTS)
def test_recorded_events_are_still_what_the_program_writes(
    agent: str, cli: Callable[[str], Play], modules: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    (run,) = cli(agent)(recorded_script(agent), *on("spaceship-titanic"))
    written = [json.loads(line) for line in (run.paths.logs / "trajectory.jsonl").read_text().splitlines()]
    recorded = translated(agent, modules, tmp_path)
    assert [
        (line["kind"], line.get("step")) for line in written if line["kind"] not in ("start", "submission", "end")
    ] == [(line["kind"], line["step"]) for line in recorded]
    assert (run.record.ended, report_of(run).status) == ("finished", "graded")
    assert "the program failed" in the_end(run)


@real
@pytest.mark.parametrize("agent", AGENTS)
def test_tokens_and_cost_are_what_the_endpoint_sent(agent: str, cli: Callable[[str], Play], tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"models": {"scripted": {"input": 1.0, "cached": 0.5, "output": 2.0}}}))
    usage = {"input": 10_000, "cached": 4_000, "output": 500}
    script = [shell(agent, SUBMIT, usage=usage), {"text": "Done.", "usage": usage}]
    (run,) = cli(agent)(script, *on("spaceship-titanic"), "--prices", str(prices))
    used = usage_of(run)
    assert (used.calls, used.input_tokens, used.cached_tokens, used.output_tokens) == (2, 20_000, 8_000, 1_000)
    assert used.cost == pytest.approx((12_000 * 1.0 + 8_000 * 0.5 + 1_000 * 2.0) / 1e6)
    own = [line for line in read_lines(run) if line["kind"] == "call"]
    assert sum(line["input_tokens"] for line in own) == 20_000
    assert sum(line["output_tokens"] for line in own) == 1_000


def read_lines(run: Run) -> Lines:
    return [json.loads(line) for line in (run.paths.logs / "trajectory.jsonl").read_text().splitlines()]


@real
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    ("answer", "ended", "reason"),
    [
        pytest.param({"status": 400, "text": "No."}, "agent_error", "the program failed", id="refuses"),
        pytest.param({"text": "I refuse."}, "finished", "the model stopped", id="prose"),
        pytest.param({"text": "x", "usage": {"input": 60_000, "output": 1}}, "finished", "budget", id="budget"),
    ],
)
def test_an_end_without_a_submission(
    agent: str, answer: dict[str, Any], ended: str, reason: str, cli: Callable[[str], Play]
) -> None:
    options = ["--budget", "70000tokens"] if reason == "budget" else []
    (run,) = cli(agent)(
        [{**answer, "repeat": True}], *on("spaceship-titanic"), *options, "--agent-option", "restarts=1"
    )
    assert run.record.ended == ended, run.paths.log.read_text()
    assert run.record.submission == "none"
    assert reason in the_end(run)
    assert events_of(run, "restart")


@real
@pytest.mark.parametrize("agent", AGENTS)
def test_streams_that_are_garbage_or_break_off(agent: str, cli: Callable[[str], Play], registry: Registry) -> None:
    """The program asks again or is started again, and then it works."""
    script = [
        {"garbage": "data: {not json\n\n"},
        {"disconnect": True, "text": "I am about to say something long."},
        shell(agent, SUBMIT),
        {"text": "Done.", "repeat": True},
    ]
    (run,) = cli(agent)(script, *on("spaceship-titanic"))
    assert (run.record.ended, report_of(run).status) == ("finished", "graded"), run.paths.log.read_text()


@real
@pytest.mark.parametrize("agent", AGENTS)
def test_a_model_that_never_ends(agent: str, cli: Callable[[str], Play]) -> None:
    script = [shell(agent, SUBMIT), shell(agent, "echo again", repeat=True)]  # after five, Gemini CLI notices the loop
    (run,) = cli(agent)(script, *on("spaceship-titanic"), "--agent-option", "turns=3")
    assert (run.record.ended, report_of(run).status) == ("finished", "graded"), run.paths.log.read_text()
    assert "turns" in the_end(run)
    assert 3 <= usage_of(run).calls <= 6


@real
@pytest.mark.parametrize("agent", AGENTS)
def test_the_key_is_in_no_file(agent: str, cli: Callable[[str], Play], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENDPOINT_KEY", "sk-never-written-down")
    look = "env; cat /proc/*/environ $HOME/.codex/* $HOME/*.json $HOME/.claude.json 2>/dev/null"
    script = [shell(agent, f"{look}; {SUBMIT}"), {"text": "Done.", "repeat": True}]
    (run,) = cli(agent)(script, *on("spaceship-titanic"), "--key-env", "ENDPOINT_KEY")
    assert report_of(run).status == "graded"
    files = [path for path in run.paths.root.parent.rglob("*") if path.is_file()]
    assert any(b"OPENAI_API_KEY" in path.read_bytes() for path in files), "the environment was printed"
    assert not [path for path in files if b"sk-never-written-down" in path.read_bytes()]
