"""Exit codes mean the same in all verbs, and what a person can fix is one line: docs/reference/exit-codes.md."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.competition_folders import add_competition, drop_privileges
from support.waiting import wait_until

from mlebench.cli.verbs import VERBS
from mlebench.contract.new_competition import new_competition
from mlebench.registry import Competition

OUTPUTS = [
    ["agents"],
    ["run", "--help"],
    ["runs", "--json"],
    ["--help"],
    ["--version"],
    ["list"],
    ["list", "--json"],
    ["show", "spaceship-titanic"],
    ["doctor"],
    ["dev", "download-leaderboard", "-c", "spaceship-titanic"],
    ["prepare", "--help"],
    ["verify", "--help"],
    ["twin", "spaceship-titanic"],
    ["demo", "--help"],
    ["agents"],
    ["run", "--help"],
    ["runs", "--help"],
    ["report", "--help"],
    ["bundle", "--help"],
    ["image", "--help"],
    ["inspect", "failures", "{jsonl}", "--json"],
    ["view", "--help"],
    ["new-competition", "--help"],
    ["test-competition", "{competition}"],
    ["validate", "{sample}", "spaceship-titanic"],
    ["grade-sample", "{sample}", "spaceship-titanic"],
    ["grade", "--submission", "{jsonl}", "--output-dir", "{out}"],
]


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mlebench", *map(str, arguments)]
    options = {"stdout": subprocess.PIPE} | options
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, **options)


@pytest.fixture
def data(titanic: Competition, tmp_path: Path) -> Path:
    """A data directory for this test."""
    shutil.copytree(titanic.paths.root, tmp_path / "data" / titanic.id)
    (tmp_path / "data" / "data-dir.json").write_text('{"kind": "twin"}\n')
    return tmp_path / "data"


@pytest.fixture
def filled(data: Path, titanic: Competition, tmp_path: Path) -> dict[str, str]:
    jsonl = tmp_path / "s.jsonl"
    jsonl.write_text(json.dumps({"competition_id": titanic.id, "submission_path": str(titanic.sample_submission)}))
    sample = data / titanic.id / "prepared/public/sample_submission.csv"
    competition = new_competition(tmp_path / "fishing-exit-codes")
    return {
        "sample": str(sample),
        "jsonl": str(jsonl),
        "out": str(tmp_path / "out"),
        "competition": str(competition),
    }


def _is_one_line(text: str) -> bool:
    return len([line for line in text.splitlines() if not line.startswith("[")]) == 1 and "Traceback" not in text


def test_every_verb_is_tried_here() -> None:
    assert {arguments[0] for arguments in OUTPUTS} >= VERBS.keys()


@pytest.mark.parametrize(("arguments", "unbuffered"), [*((words, "") for words in OUTPUTS), (["list"], "1")])
def test_output_on_a_full_disk_or_a_closed_pipe(
    arguments: list[str], unbuffered: str, data: Path, filled: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    monkeypatch.setenv("MLEBENCH_DATA_DIR", str(data))
    words = [word.format(**filled) for word in arguments]
    with Path("/dev/full").open("wb") as full:
        done = run(*words, stdout=full)
    assert (done.returncode, _is_one_line(done.stderr)) == (1, True), done.stderr
    assert "Error: cannot write: the disk is full" in done.stderr
    reading, writing = os.pipe()
    os.close(reading)
    done = run(*words, stdout=writing)
    os.close(writing)
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if not line.startswith("[")] == []
    assert run(*words, preexec_fn=lambda: os.close(1)).returncode == 0


SLOW = """
import time
from pathlib import Path

def grade(submission, answers):
    Path(__file__).with_name("begun").touch()
    time.sleep(3600)
"""


@pytest.fixture
def slow(data: Path, titanic: Competition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A competition whose grader does not end; the file shows that it has begun."""
    add_competition(tmp_path / "own", "slow", SLOW, titanic, data)
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(tmp_path / "own"))
    monkeypatch.setenv("MLEBENCH_DATA_DIR", str(data))
    return tmp_path / "own" / "slow" / "begun"


def _interrupted(arguments: list[str], begun: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "mlebench", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        wait_until(begun.exists, "the work has begun", process=process)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it
        _, said = process.communicate(timeout=120)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # whatever is left
    return process.returncode, said


def test_an_interruption_ends_with_130_and_one_line(slow: Path, filled: dict[str, str], tmp_path: Path) -> None:
    assert _interrupted(["grade-sample", filled["sample"], "slow"], slow) == (130, "Interrupted\n")
    slow.unlink()
    jsonl = tmp_path / "slow.jsonl"
    jsonl.write_text(json.dumps({"competition_id": "slow", "submission_path": filled["sample"]}))
    arguments = ["grade", "--submission", str(jsonl), "--output-dir", filled["out"]]
    assert _interrupted(arguments, slow) == (130, "Interrupted\n")
    assert list(Path(filled["out"]).iterdir()) == []


SLOW_PREPARE = """
import time
from pathlib import Path

def prepare(raw, public, private):
    Path(__file__).with_name("begun").touch()
    time.sleep(3600)
"""


@pytest.mark.parametrize("more", [[], ["-c", "spaceship-titanic", "--jobs", "2"]])
def test_an_interrupted_prepare_ends_with_130(slow: Path, data: Path, more: list[str]) -> None:
    (slow.parent / "prepare.py").write_text(SLOW_PREPARE)
    shutil.rmtree(data / "slow")
    (data / "data-dir.json").unlink()
    (data / "slow" / "raw").mkdir(parents=True)
    (data / "slow" / "raw" / "train.csv").write_text("a\n1\n")
    code, said = _interrupted(["prepare", "-c", "slow", "--skip-verification", *more], slow)
    assert code == 130
    assert said.splitlines()[-1] == "Interrupted"
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["list", "--nonsense"], 2),
        (["dev"], 2),
        (["list", "--split", "tiny"], 2),
        (["twin", "--split", "tiny"], 2),
        (["prepare", "--split", "tiny"], 2),
        (["twin", "no-such-one"], 2),
        (["verify", "no-such-one"], 2),
        (["show", "no-such-one"], 2),
        (["dev", "download-leaderboard", "-c", "no-such-one"], 2),
        (["prepare", "-c", "no-such-one"], 2),
        (["prepare", "--check", "-c", "no-such-one"], 2),
        (["grade-sample", "{sample}", "no-such-one"], 2),
        (["validate", "{sample}", "no-such-one"], 2),
        (["grade-sample", "{sample}", "leaf-classification"], 1),
        (["grade-sample", "none.csv", "spaceship-titanic"], 0),
        (["grade-sample", "none.csv", "spaceship-titanic", "--strict"], 1),
        (["grade-sample", "{sample}", "spaceship-titanic", "--strict"], 0),
        (["grade-sample", "{sample}", "spaceship-titanic", "--max-bytes", "0"], 2),
        (["grade-sample", "{sample}", "broken"], 1),
        (["grade", "--submission", "{jsonl}", "--output-dir", "{jsonl}"], 1),
        (["grade", "--submission", "{out}", "--output-dir", "{out}"], 1),
    ],
)
def test_codes(
    arguments: list[str],
    code: int,
    data: Path,
    filled: dict[str, str],
    titanic: Competition,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    add_competition(tmp_path / "own", "broken", "", titanic, data)
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(tmp_path / "own"))
    monkeypatch.setenv("MLEBENCH_DATA_DIR", str(data))
    done = run(*(word.format(**filled) for word in arguments))
    assert done.returncode == code, done.stderr
    assert "broken" in arguments or "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("entry", "options", "code"),
    [
        ({}, [], 0),
        ({}, ["--strict"], 0),
        ({"submission_path": None}, [], 0),
        ({"submission_path": None}, ["--strict"], 1),
        ({"submission_path": 3}, [], 1),
        ({"competition_id": "no-such-one"}, [], 1),
        ({"competition_id": "leaf-classification"}, [], 1),
    ],
)
def test_codes_of_a_batch(
    entry: dict[str, Any], options: list[str], code: int, data: Path, filled: dict[str, str]
) -> None:
    jsonl = Path(filled["jsonl"])
    jsonl.write_text(json.dumps(json.loads(jsonl.read_text()) | entry))
    done = run("grade", "--submission", jsonl, "--output-dir", filled["out"], "--data-dir", data, *options)
    assert done.returncode == code, done.stderr


class TestClosedToUs:
    """Permission denied is one line, whatever is unreadable."""

    def _run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return run(*arguments, preexec_fn=drop_privileges())

    def test_a_submission(self, data: Path, filled: dict[str, str], tmp_path: Path) -> None:
        closed = tmp_path / "closed.csv"
        shutil.copy(filled["sample"], closed)
        closed.chmod(0)
        for verb in ("grade-sample", "validate"):
            done = self._run(verb, closed, "spaceship-titanic", "--data-dir", data)
            assert (done.returncode, done.stderr) == (1, f"Error: cannot read {closed}: permission denied\n")
        entry = {"competition_id": "spaceship-titanic", "submission_path": str(closed)}
        Path(filled["jsonl"]).write_text(json.dumps(entry))
        done = self._run("grade", "--submission", filled["jsonl"], "--output-dir", filled["out"], "--data-dir", data)
        assert done.returncode == 1, done.stderr
        (report,) = Path(filled["out"]).iterdir()
        (row,) = json.loads(report.read_text())["unjudged"]
        assert (row["status"], row["reason"]) == ("bad_entry", f"cannot read {closed}: permission denied")

    @pytest.mark.parametrize("closed", ["", "sample_submission.csv"])
    def test_a_public_folder(self, closed: str, data: Path, titanic: Competition) -> None:
        public = data / titanic.id / "prepared/public"
        mode = (public / closed).stat().st_mode
        (public / closed).chmod(0)
        try:
            done = self._run("validate", "--public", public, titanic.sample_submission, titanic.id)
        finally:
            (public / closed).chmod(mode)
        assert (done.returncode, _is_one_line(done.stderr)) == (1, True), done.stderr
        assert "permission denied" in done.stderr

    @pytest.mark.parametrize("closed", ["", "spaceship-titanic", "spaceship-titanic/prepared/private"])
    def test_the_data(self, closed: str, data: Path, filled: dict[str, str], titanic: Competition) -> None:
        (data / closed).chmod(0)
        try:
            self._try_all(data, filled, titanic)
        finally:
            (data / closed).chmod(0o755)

    def _try_all(self, data: Path, filled: dict[str, str], titanic: Competition) -> None:
        sample = titanic.sample_submission
        for arguments in (["grade-sample", sample, "spaceship-titanic"], ["verify"], ["verify", "spaceship-titanic"]):
            done = self._run(*arguments, "--data-dir", data)
            assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
            assert "permission denied" in done.stderr
        done = self._run("grade", "--submission", filled["jsonl"], "--output-dir", filled["out"], "--data-dir", data)
        assert done.returncode == 1, done.stderr
        (report,) = Path(filled["out"]).glob("*_grading_report.json")
        (row,) = json.loads(report.read_text())["competition_reports"]
        assert row["status"] == "not_prepared"
        assert "permission denied" in row["reason"]
        for arguments in (["list"], ["show", "spaceship-titanic"], ["prepare", "--twin", "-c", "spaceship-titanic"]):
            assert "Traceback" not in self._run(*arguments, "--data-dir", data).stderr
        done = self._run("doctor", "--data-dir", data)
        assert done.returncode == 0, done.stderr
        assert re.search("^bad .*permission denied|^bad .*not writable", done.stdout, re.MULTILINE), done.stdout

    @pytest.mark.parametrize("what", ["settings", "their folder", "search path", "kaggle"])
    def test_settings(self, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        closed = tmp_path / "closed"
        closed.mkdir()
        (closed / "config.yaml").write_text("data_dir: x\n")
        if what == "search path":
            monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(closed))
        elif what == "kaggle":
            monkeypatch.setenv("KAGGLE_CONFIG_DIR", str(closed))
        else:
            monkeypatch.setenv("MLEBENCH_CONFIG", str(closed / "config.yaml"))
        (closed / "config.yaml" if what == "settings" else closed).chmod(0)
        try:
            for arguments in (["list"], ["show", "spaceship-titanic"], ["prepare", "-c", "leaf-classification"]):
                done = self._run(*arguments)
                assert "Traceback" not in done.stderr
                assert done.returncode in (0, 1)
            done = self._run("doctor")
            assert done.returncode == 0, done.stderr
            assert "sandboxes" in done.stdout or "docker" in done.stdout
        finally:
            closed.chmod(0o755)


def test_doctor_names_a_broken_competition_and_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own" / "mine").mkdir(parents=True)
    (tmp_path / "own" / "mine" / "config.yaml").write_text("id: other\n")
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(tmp_path / "own"))
    (tmp_path / "file").write_text("")
    done = run("doctor", "--data-dir", tmp_path / "file")
    assert done.returncode in (0, 2)
    done = run("doctor", "--data-dir", tmp_path / "file" / "below")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^bad +mine ", done.stdout, re.MULTILINE)
    assert re.search(r"^bad +data dir .*is not a folder", done.stdout, re.MULTILINE)
    assert "docker" in done.stdout


def test_doctor_names_settings_that_have_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEBENCH_DATADIR", "x")
    monkeypatch.setenv("MLEBENCH_CONFIG", str(tmp_path / "none.yaml"))
    out = run("doctor", "--data-dir", tmp_path).stdout
    assert re.search(r"^note +settings +\$MLEBENCH_DATADIR .*did you mean MLEBENCH_DATA_DIR\?", out, re.MULTILINE)
    assert re.search(r"^bad +settings .*none\.yaml does not exist +fix \$MLEBENCH_CONFIG", out, re.MULTILINE)
    (tmp_path / "none.yaml").write_text("data_dirs: x\n")
    monkeypatch.setenv("MLEBENCH_DATA_DIR", str(tmp_path))
    assert re.search(r"^bad +settings .*did you mean data_dir\?", run("doctor").stdout, re.MULTILINE)


def test_log_lines_carry_no_escape_codes(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text('"\x1b[2JPassengerId",Transported\n"\x1b]0;x\x07",1\n')
    done = run("grade-sample", path, "spaceship-titanic", "--data-dir", data)
    assert json.loads(done.stdout)["status"] == "invalid"
    assert "\x1b" not in done.stdout + done.stderr
