"""The format check: what it may know, when it says "valid", and who is to blame when it cannot say anything."""

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

import mlebench.validate
from mlebench.registry import Competition, Registry
from mlebench.scoring import Grader
from mlebench.validate import CheckFailedError, over_public, validate_format

PACKAGE = Path(mlebench.validate.__file__).parent
Grade = str | Callable[..., Any]


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mlebench", "validate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)


@pytest.fixture
def public(titanic: Competition, tmp_path: Path) -> Path:
    """A public folder far from any data directory, as in a sandbox."""
    return Path(shutil.copytree(titanic.public_dir, tmp_path / "home" / "data"))


@pytest.fixture
def rigged(public: Path) -> Competition:
    """A competition without answers, whose grader a test may replace."""
    return over_public(Registry(public / "nowhere").get_competition("spaceship-titanic"), public)


def _rig(competition: Competition, grade: Grade) -> None:
    object.__setattr__(competition, "grader", Grader("rigged", grade))


def test_it_needs_only_a_public_folder(public: Path) -> None:
    sample, test = public / "sample_submission.csv", public / "test.csv"
    done = run("--public", public, sample, "spaceship-titanic")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"is_valid": True, "result": "Submission is valid."})
    done = run("--public", public, test, "spaceship-titanic")
    assert done.returncode == 1
    assert "missing the following columns: Transported" in json.loads(done.stdout)["result"]


def test_samples_inside_archives_are_found_in_a_public_folder(tmp_path: Path) -> None:
    from mlebench.data.pipeline import prepare
    from mlebench.data.sources import TwinSource

    competition = Registry(tmp_path / "data").get_competition("statoil-iceberg-classifier-challenge")
    prepare(competition, TwinSource())
    moved = over_public(competition, Path(shutil.copytree(competition.public_dir, tmp_path / "public")))
    gold = tmp_path / "gold.csv"
    shutil.copy(competition.gold_submission, gold)
    shutil.rmtree(competition.paths.data_dir)
    assert validate_format(gold, moved) == (True, "Submission is valid.")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["x.csv"],
        ["--serve", "x.csv", "spaceship-titanic"],
        ["--port", "1", "x.csv", "spaceship-titanic"],
        ["--unix", "s", "x.csv", "spaceship-titanic"],
        ["--public", ".", "--data-dir", ".", "x.csv", "spaceship-titanic"],
        ["--serve", "--public", "."],
        ["--serve", "--competition-id", "no-such-competition"],
    ],
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], tmp_path: Path) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_it_loads_neither_grade_nor_data_and_pandas_only_when_there_is_something_to_read(public: Path) -> None:
    program = """
import sys
from mlebench.cli import main
try:
    main(["validate", "--public", sys.argv[1], sys.argv[2], "spaceship-titanic"])
except SystemExit as end:
    print(sorted(sys.modules), end.code, file=sys.stderr)
"""
    seen = {}
    for name in ("not-there.csv", "sample_submission.csv"):
        command = [sys.executable, "-c", program, str(public), str(public / name)]
        seen[name] = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    for modules in seen.values():
        assert "'mlebench.validate'" in modules
        assert not any(f"'{name}" in modules for name in ("mlebench.grade'", "mlebench.data'", "mlebench.data."))
    assert "'pandas'" not in seen["not-there.csv"]
    assert "'pandas'" in seen["sample_submission.csv"]


def test_the_server_loads_neither_grade_nor_data() -> None:
    program = "import sys, mlebench.validate.server, mlebench.validate.isolated_check; print(sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "'mlebench.validate.server'" in modules
    assert not any(f"'{name}" in modules for name in ("mlebench.grade'", "mlebench.data'", "pandas'", "numpy'"))


def test_the_package_accesses_only_the_public_folder() -> None:
    asked, spelled = set(), set()
    for path in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            asked |= {node.attr} if isinstance(node, ast.Attribute) else set()
            spelled |= {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()
    assert "public_dir" in asked
    assert not asked & {"answers", "private_dir", "raw_dir", "gold_submission", "paths", "data_dir"}
    assert not {text for text in spelled if text in ("prepared", "public", "private", "raw")}


def _none(submission: object, answers: object) -> None:
    return None


def _fails(submission: object, answers: object) -> NoReturn:
    raise ZeroDivisionError("in /home/somebody")


def _exits(submission: object, answers: object) -> NoReturn:
    raise SystemExit(0)


def _one_argument(submission: object) -> float:
    return 0.5


@pytest.mark.parametrize(
    "grade", [_none, _fails, _exits, _one_argument, "mlebench.competitions.spaceship-titanic.grade:nothing"]
)
def test_a_broken_grader_gives_no_verdict_and_is_our_fault(rigged: Competition, grade: Grade) -> None:
    _rig(rigged, grade)
    with pytest.raises(CheckFailedError, match="a fault of the benchmark, not of the submission") as caught:
        validate_format(rigged.public_dir / "sample_submission.csv", rigged)
    assert "/home" not in str(caught.value)


def test_a_failed_check_is_reported_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, public: Path
) -> None:
    source = Registry().get_competition("spaceship-titanic").folder
    folder = tmp_path / "more" / "broken-titanic"
    folder.mkdir(parents=True)
    for name in ("config.yaml", "description.md", "leaderboard.csv"):
        text = (source / name).read_text(encoding="utf-8")
        (folder / name).write_text(text.replace("spaceship-titanic", "broken-titanic"), encoding="utf-8")
    (folder / "grade.py").write_text("def grade(submission, answers):\n    raise KeyError('x')\n", encoding="utf-8")
    monkeypatch.setenv("MLEBENCH_COMPETITION_PATH", str(folder.parent))
    done = run("--public", public, public / "sample_submission.csv", "broken-titanic")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer.keys() == {"error", "details"}
    assert "fault of the benchmark" in answer["details"]
    assert "KeyError: 'x'" in done.stderr


def test_public_files_that_are_missing_are_for_the_person_at_the_keyboard(public: Path, tmp_path: Path) -> None:
    submission = tmp_path / "submission.csv"
    (public / "sample_submission.csv").rename(submission)
    done = run("--public", public, submission, "spaceship-titanic")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: spaceship-titanic is not prepared: there is no")


@pytest.mark.parametrize("id", ["spaceship-titanic", "tweet-sentiment-extraction"])  # the latter has its own stand-in
def test_without_prepared_data_it_says_how_to_get_some(id: str, public: Path, tmp_path: Path) -> None:
    done = run("--data-dir", tmp_path, public / "sample_submission.csv", id)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"Error: {id} is not prepared: there is no {tmp_path}")
    assert f"Run `mlebench prepare -c {id} --data-dir {tmp_path}` first." in done.stderr


def test_messages_name_no_place_on_this_machine(rigged: Competition, tmp_path: Path) -> None:
    for name in ("not-there.csv", "folder.csv", "link.csv", "large.csv", "not.txt", "empty.csv"):
        path = tmp_path / name
        if name == "folder.csv":
            path.mkdir()
        elif name == "link.csv":
            path.symlink_to(rigged.public_dir / "sample_submission.csv")
        elif name in ("large.csv", "empty.csv"):
            path.write_bytes(b"x" * 11 * (name == "large.csv"))
        valid, message = validate_format(path, rigged, limit=10)
        assert not valid
        assert message.startswith("Submission invalid! ")
        assert str(tmp_path) not in message
