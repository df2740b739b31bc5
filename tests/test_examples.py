"""The examples are run as a reader would run them: from another folder, with `mlebench` on the path."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.real_agents import VENVS
from support.records import report_of

from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.records.run_groups import Group
from mlebench.registry import Registry
from mlebench.sandbox import sandbox_named

EXAMPLES = Path(__file__).parents[1] / "examples"
PROGRAMS = sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.sh")])
TITANIC = "spaceship-titanic"
Run = Callable[..., str]


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples") / "twins"
    for id in (TITANIC, "spooky-author-identification"):
        prepare(Registry(folder).get_competition(id), TwinSource())
    return folder


@pytest.fixture
def run(twins: Path, tmp_path: Path) -> Run:
    """Run an example in its own folder; return what it printed."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, arguments in {"python": "", "mlebench": "-m mlebench"}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -P {arguments} "$@"\n')
        (programs / name).chmod(0o755)

    def call(name: str, *arguments: str, **env: str) -> str:
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["python" if name.endswith(".py") else "sh", EXAMPLES / name, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "MLEBENCH_DATA_DIR": str(twins), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        assert "Traceback" not in done.stdout
        return done.stdout

    return call


@pytest.fixture
def sandbox() -> list[str]:
    """Arguments for examples that run agents: the best sandbox, or none if none works."""
    return ["--sandbox", "process" if sandbox_named("bubblewrap").fault() else "bubblewrap"]


def reports(tmp_path: Path, group: str) -> list[dict[str, Any]]:
    """The reports of an example's runs, in the order in which they were made."""
    groups = [Group.read(folder) for folder in sorted((tmp_path / group).iterdir())]
    return [
        {"agent": group.record.agent.name, **msgspec.structs.asdict(report_of(run))}
        for group in groups
        for run in group.runs()
    ]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_examples_are_short_and_explain_themselves(program: Path) -> None:
    text = program.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    assert [word for word in ("Shows:", "Run:", "Prints:") if word not in text.split("\n\n")[0]] == []
    assert f"examples/{program.name}" in text
    assert f"]({program.name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_shared_parts_of_examples_are_short_too() -> None:
    shared = [path for path in EXAMPLES.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert [path.name for path in shared if len(path.read_text(encoding="utf-8").splitlines()) > 40] == []


def test_grade_own_runs(run: Run, twins: Path, tmp_path: Path) -> None:
    registry = Registry(twins)
    spooky = registry.get_competition("spooky-author-identification")
    for id, seed, source in (
        (TITANIC, "0", registry.get_competition(TITANIC).gold_submission),
        (TITANIC, "1", None),
        (spooky.id, "0", spooky.sample_submission),
    ):
        folder = tmp_path / "mine" / id / seed
        folder.mkdir(parents=True)
        if source:
            shutil.copy(source, folder / "submission.csv")
    lines = run("grade_own_runs.py", "mine").splitlines()
    assert f"{TITANIC}/0: graded, score 1.0, medal gold" in lines
    assert f"{TITANIC}/1: missing, score None, medal none" in lines
    assert lines[-1] == "1 medals in 3 runs"
    (graded,) = (tmp_path / "mine" / "graded").glob("*_grading_report.json")
    assert json.loads(graded.read_text())["total_runs_with_submissions"] == 2


def test_compare_scaffolds(run: Run, sandbox: list[str], tmp_path: Path) -> None:
    shown = run("compare_scaffolds.sh", *sandbox)
    repair, one_shot = reports(tmp_path, "runs-scaffolds")
    assert (repair["agent"], repair["status"]) == ("repair", "graded")
    assert (one_shot["agent"], one_shot["status"]) == ("one-shot", "missing")
    assert re.search(r"^repair +one-shot +given +any medal +1 +1 and 1", shown, re.MULTILINE)


def test_retrieval(run: Run, sandbox: list[str], tmp_path: Path) -> None:
    shown = run("retrieval.sh", *sandbox)
    without, with_notes = reports(tmp_path, "runs-retrieval")
    assert with_notes["score"] > without["score"]
    entries = re.findall(r"^repair, (no knowledge|knowledge notes)(?: \(\w+\))? +given", shown, re.MULTILINE)
    assert entries == ["no knowledge", "knowledge notes"]


def test_vary_budget(run: Run, sandbox: list[str]) -> None:
    shown = run("vary_budget.sh", "dummy", *sandbox)
    entries = re.findall(r"^dummy, (\d+ (?:s|min)), (\d CPUs?) +given", shown, re.MULTILINE)
    assert entries == [("30 s", "1 CPU"), ("2 min", "1 CPU"), ("2 min", "2 CPUs")]


def test_check_rules(run: Run, sandbox: list[str]) -> None:
    honest, cheating = re.split(r"a violation, by detectors", run("check_rules.sh", *sandbox))[:2]
    assert "violation: " not in honest
    assert "violation: written-by-hand" in cheating
    assert "code/predict.py" in cheating


def test_obfuscated(run: Run, sandbox: list[str]) -> None:
    shown = run("obfuscated.sh", *sandbox)
    assert f"{TITANIC}: # Spaceship Titanic\n" in shown
    assert re.search(r"^task-[0-9a-f]+: ## Description$", shown, re.MULTILINE)
    assert re.findall(r"^command, description (\w+) +given", shown, re.MULTILINE) == ["named", "obfuscated"]


def test_own_competition(run: Run, sandbox: list[str], tmp_path: Path) -> None:
    shown = run("own_competition.sh", *sandbox)
    assert re.search(r"^name +Seed Germination$", shown, re.MULTILINE)
    assert "seed-germination satisfies the contract" in shown
    (report,) = reports(tmp_path, "runs-own")
    assert report["status"] == "graded"
    assert report["any_medal"]


def test_rl_loop(run: Run) -> None:
    found = re.findall(r"^(\w+): (\d+) times, mean reward ([\d.]+)$", run("rl_loop.py"), re.MULTILINE)
    times = {column: int(count) for column, count, _ in found}
    assert max(times, key=times.__getitem__) == "CryoSleep"
    assert sum(times.values()) == 30


@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    os.environ.get("MLEBENCH_REAL_AGENTS") != "1", reason="MLEBENCH_REAL_AGENTS=1 installs baseline's packages"
)
def test_automl(run: Run, sandbox: list[str], tmp_path: Path) -> None:
    venvs = VENVS or str(tmp_path / "venvs")
    install = [sys.executable, "-P", "-m", "mlebench", "agents", "install", "baseline"]
    subprocess.run(install, env={**os.environ, "MLEBENCH_VENVS_DIR": venvs}, check=True)
    shown = run("automl.sh", *sandbox, "--time-limit", "40s", MLEBENCH_VENVS_DIR=venvs)
    search, plain = reports(tmp_path, "runs-automl")
    assert (search["agent"], plain["agent"]) == ("baseline-search", "baseline")
    assert (search["status"], plain["status"]) == ("graded", "graded")
    tried, _, few = shown.rpartition("agent baseline\n")
    assert tried.count("action: fit") >= few.count("action: fit") > 0
