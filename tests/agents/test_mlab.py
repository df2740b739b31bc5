"""mlab against scripted models: what it does with answers that help, and with answers that do not."""

import importlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.scripted_models import act, playing, requests

from mlebench.agents import load_agent
from mlebench.grade import grade_csv
from mlebench.registry import Competition

FOLDER = Path(load_agent("mlab").folder)
FINISH = act("finish", reason="enough")


class Home:
    """The folders of a run, and mlab in it as a plain process."""

    def __init__(self, root: Path, public: Path):
        self.root = root
        for name in ("submission", "logs", "code"):
            (root / name).mkdir(parents=True)
        (root / "instructions.txt").write_text("Do your best.\n")
        self.env = {f"{name.upper()}_DIR": str(root / name) for name in ("submission", "logs", "code")}
        self.env |= {"DATA_DIR": str(public), "INSTRUCTIONS": str(root / "instructions.txt"), "HOME": str(root)}
        self.env |= {"PATH": os.environ["PATH"], "MLEBENCH_MODEL": "scripted", "TIME_LIMIT_SECS": "600"}

    def run(self, url: str, *options: str, code: int = 0, **env: str) -> str:
        """What it printed, when it has ended with this exit code."""
        knobs = ("--steps", "20", "--command-seconds", "20", "--patience-seconds", "60", *options)
        command = [sys.executable, str(FOLDER / "agent.py"), *knobs]
        settings: dict[str, Any] = {"env": {**self.env, "OPENAI_BASE_URL": url, **env}, "cwd": self.root}
        done = subprocess.run(command, **settings, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (code, ""), done.stdout + done.stderr
        return done.stdout

    def told(self, kind: str) -> list[dict[str, Any]]:
        """Lines of its trajectory."""
        lines = map(json.loads, (self.root / "logs/trajectory.jsonl").read_text().splitlines())
        return [line for line in lines if line["kind"] == kind]

    @property
    def end(self) -> str:
        return self.told("end")[-1]["reason"]

    @property
    def submission(self) -> Path:
        return self.root / "submission/submission.csv"


@pytest.fixture
def home(titanic: Competition, tmp_path: Path) -> Home:
    return Home(tmp_path / "home", titanic.public_dir)


def test_it_is_small_and_needs_only_the_standard_library() -> None:
    sources = sorted(FOLDER.glob("*.py"))
    assert sum(len(path.read_text().splitlines()) for path in sources) < 600
    own = {path.stem for path in sources}
    words = [line.split() for path in sources for line in path.read_text().splitlines()]
    imported = {line[1].split(".")[0] for line in words if line and line[0] in ("import", "from")}
    assert imported - own <= sys.stdlib_module_names


def test_the_shipped_script_beats_the_sample(home: Home, titanic: Competition, tmp_path: Path) -> None:
    with playing("mlab", tmp_path) as url:
        home.run(url)
    report = grade_csv(home.submission, titanic)
    sample = grade_csv(titanic.sample_submission, titanic)
    assert report.score is not None
    assert sample.score is not None
    assert report.score > sample.score
    assert home.end.startswith("the model is done")
    kinds = {"start", "call", "thought", "action", "output", "submission", "end"}
    assert all(home.told(kind) for kind in kinds)
    assert home.told("output")[3]["exit_code"] == 0
    assert home.told("call")[0]["input_tokens"] > 1000
    task = requests(tmp_path)[0]["messages"][1]["content"]
    assert "Do your best." in task
    assert (titanic.public_dir / "description.md").read_text() in task


def test_actions(home: Home, tmp_path: Path) -> None:
    (home.root / "knowledge").mkdir()
    (home.root / "knowledge/hints.md").write_text("Be bold.")
    script = [
        act("write", "```python\nprint('one')\nprint('two')\n```", path="sub/a.py"),
        act("edit", path="sub/a.py", old="two", new="zwei"),
        act("edit", path="sub/a.py", old="print", new=""),
        act("read", path="sub/a.py", start=2, lines=1),
        act("execute", command="python3 sub/a.py; exit 3"),
        act("list", path="$HOME/knowledge"),
        act("read", path="nothing"),
        act("read", path=["a"]),
        {"text": '{"action": "read", "path": "sub/a.py", "start": Infinity}'},
        act("execute", command="ln -s nowhere broken"),
        act("list"),
        act("write", path="b.py"),
        FINISH,
    ]
    with playing(script, tmp_path) as url:
        home.run(url)
    seen = [line["text"] for line in home.told("output")]
    assert seen[0].startswith("Wrote ")
    assert "occurs 2 times" in seen[2]
    assert seen[3] == "print('zwei')"
    assert seen[4] == "one\nzwei\n\nExit code 3."
    assert home.told("output")[4]["exit_code"] == 3
    assert seen[5] == "hints.md  8 bytes"
    assert seen[6].startswith("Error: FileNotFoundError")
    assert seen[7] == "Error: `path` is missing or is not text"
    assert seen[8].startswith("Error: OverflowError")
    assert "broken  7 bytes" in seen[10]
    assert "the content is missing" in seen[11]
    asked = requests(tmp_path)
    assert "hints.md" in asked[0]["messages"][1]["content"]
    assert seen[4] in asked[5]["messages"][-1]["content"]


def test_a_command_may_remove_its_logs(home: Home, tmp_path: Path) -> None:
    with playing([act("execute", command="rm -r $LOGS_DIR"), FINISH], tmp_path) as url:
        home.run(url)
    assert home.end == "the model is done: enough"


def test_the_best_submission_is_kept(home: Home, tmp_path: Path) -> None:
    files = {name: f"printf 'id,a\\n{name},1\\n' > {name}.csv" for name in ("good", "better", "worse", "last")}
    script = [
        act("execute", command="; ".join(files.values())),
        act("submit", path="good.csv", metric="auc", value=0.7, higher_is_better=True),
        act("submit", path="better.csv", metric="auc", value=0.8, higher_is_better=True),
        act("submit", path="worse.csv", metric="auc", value=0.75, higher_is_better=True),
        FINISH,
    ]
    with playing(script, tmp_path) as url:
        home.run(url)
    assert "better" in home.submission.read_text()
    assert [line["value"] for line in home.told("validation")] == [0.7, 0.8, 0.75]
    assert len(home.told("submission")) == 2
    assert "is worse than 0.8" in home.told("output")[-1]["text"]


@pytest.mark.parametrize("answer", ["I would rather talk about the weather.", "{", '{"action": 1}', "", "\ud800"])
def test_a_model_that_never_acts_is_reminded_then_abandoned(home: Home, tmp_path: Path, answer: str) -> None:
    with playing([{"text": answer, "repeat": True}], tmp_path) as url:
        home.run(url)
    assert home.end == "no action was found in 5 answers in a row"
    asked = requests(tmp_path)
    assert len(asked) == 5
    assert "No action was found in your answer" in asked[1]["messages"][-1]["content"]


def test_actions_that_do_not_exist_are_answered_until_steps_run_out(home: Home, tmp_path: Path) -> None:
    with playing([{**act("browse", url="http://example.org"), "repeat": True}], tmp_path) as url:
        home.run(url, "--steps", "4")
    assert home.end == "the steps are used up"
    assert len(requests(tmp_path)) == 4
    assert home.told("output")[0]["text"].startswith("Error: there is no action 'browse'; there are list, read, ")


def test_endless_commands_end(home: Home, tmp_path: Path) -> None:
    script = [
        act("execute", command="yes"),
        act("execute", command="exec >&-; sleep 99"),
        act("execute", command="sleep 98 & echo begun"),
        FINISH,
    ]
    with playing(script, tmp_path) as url:
        home.run(url, "--command-seconds", "7")
    printing, silent, background = home.told("output")
    assert printing["text"].startswith("y\ny\n")
    assert "left out" in printing["text"]
    assert printing["text"].endswith("It was ended after 7 seconds: too long.")
    assert (printing["exit_code"], silent["exit_code"]) == (None, None)
    assert background["text"] == "begun\n\nExit code 0."
    assert home.end.startswith("the model is done")


def test_a_model_that_fails_temporarily_is_asked_again(home: Home, tmp_path: Path) -> None:
    script = [{"status": 429, "headers": {"Retry-After": 1}}, {"garbage": "<html>"}, FINISH]
    with playing(script, tmp_path) as url:
        log = home.run(url)
    assert home.end == "the model is done: enough"
    assert log.count("the model does not answer") == 2


@pytest.mark.parametrize(
    ("answer", "end", "code"),
    [
        ({"status": 503}, "the model has not answered for 1 s: HTTP 503", 1),
        ({"text": "x" * 1000, "disconnect": True}, "the model has not answered for 1 s: IncompleteRead", 1),
        ({"status": 401, "text": "wrong key"}, "the model refuses: HTTP 401", 1),
        (
            {"status": 403, "garbage": '{"error": {"type": "budget_exceeded", "message": "5 USD"}}'},
            "the budget for the model is used up",
            0,
        ),
    ],
)
def test_a_model_that_fails_ends_it(home: Home, tmp_path: Path, answer: dict[str, Any], end: str, code: int) -> None:
    with playing([act("list"), {**answer, "repeat": True}], tmp_path) as url:
        home.run(url, "--patience-seconds", "1", code=code)
    assert home.end.startswith(end)
    assert len(home.told("action")) == 1


def test_an_endpoint_that_is_not_there_ends_it(home: Home) -> None:
    with socket.socket() as taken:  # nobody else gets its port, and it does not listen
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        home.run(url, "--patience-seconds", "1", code=1)
    assert "Connection refused" in home.end


def test_it_stops_before_time_is_up(home: Home, tmp_path: Path) -> None:
    with playing([{**act("list"), "delay": 30, "repeat": True}], tmp_path) as url:
        home.run(url, TIME_LIMIT_SECS="3")
    assert home.end == "the time is used up"


def test_a_restarted_agent_continues(home: Home, tmp_path: Path) -> None:
    script = [act("execute", command="echo first"), {"status": 401}, act("execute", command="echo second"), FINISH]
    with playing(script, tmp_path) as url:
        home.run(url, code=1)
        with (home.root / "logs/history.jsonl").open("a") as history:
            history.write('{"role": "assi')  # it was killed while it wrote
        home.run(url)
    last = requests(tmp_path)[-1]["messages"]
    assert [message["role"] for message in last] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "first" in last[3]["content"]
    assert [line["step"] for line in home.told("action")] == [1, 2, 3]


def test_old_observations_are_shortened_when_the_conversation_is_long(home: Home, tmp_path: Path) -> None:
    script = [act("execute", command=f"printf '%05000d' {number}") for number in (1, 2)]
    with playing([*script, FINISH], tmp_path) as url:
        home.run(url, "--context-characters", "12000")
    first, second = (message["content"] for message in requests(tmp_path)[-1]["messages"][3::2])
    assert "characters left out" in first
    assert len(first) < 600
    assert len(second) > 5000


@pytest.fixture
def actions(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in ("actions", "journal"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("actions")


@pytest.mark.parametrize(
    ("answer", "thought", "action"),
    [
        ('{"action": "list"}', "", {"action": "list"}),
        ('Thought: a {b} {"c": 1}\n```json\n{"action": "list"}\n```', 'a {b} {"c": 1}\n```json', {"action": "list"}),
        ('{"action": "execute", "command": "a\nb"}', "", {"action": "execute", "command": "a\nb"}),
        ('{"action": "finish"} {"action": "list"}', "", {"action": "finish"}),
        (
            '{"action": "write", "path": "a"}\n```py\nx = {}\n```\nend',
            "",
            {"action": "write", "path": "a", "content": "x = {}\n"},
        ),
        (
            '{"action": "write", "path": "a", "content": "b"}\n```\nc\n```',
            "",
            {"action": "write", "path": "a", "content": "b"},
        ),
    ],
)
def test_actions_are_found_in_prose(actions: ModuleType, answer: str, thought: str, action: dict[str, Any]) -> None:
    assert actions.parse(answer) == (thought, action)


def test_without_a_model_the_error_says_what_to_do(home: Home) -> None:
    command = [sys.executable, str(FOLDER / "agent.py")]
    done = subprocess.run(command, env=home.env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "There is no model: run this agent with `--network model --model NAME`.\n"
