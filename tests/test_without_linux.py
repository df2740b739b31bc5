"""Everything but running agents works on systems without `/proc` and the calls that Linux alone has, such as macOS."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mlebench.core import paths
from mlebench.run import Request, run

ID = "spaceship-titanic"
SYSTEM = Path(__file__).parent / "support" / "without_linux"


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A group of one run, done on Linux."""
    folder = tmp_path_factory.mktemp("runs")
    request = Request(
        agent="dummy",
        competitions=[ID],
        twin=True,
        data_dir=folder / "data",
        runs_dir=folder / "runs",
        sandbox="process",
    )
    return run(request).paths.root


def without_linux(*arguments: object, code: int = 0) -> str:
    """What a command prints to stdout, and below that to stderr."""
    environment = os.environ | {"PYTHONPATH": str(SYSTEM)}
    command = [sys.executable, "-P", "-m", "mlebench", *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return f"{done.stdout}\n{done.stderr}"


def test_the_system_of_these_tests_is_not_linux() -> None:
    program = "import os, sys; print(sys.platform, hasattr(os, 'pidfd_open'), os.path.exists('/proc/self'))"
    environment = os.environ | {"PYTHONPATH": str(SYSTEM)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "darwin False False\n"


def test_data_is_prepared_verified_and_graded(tmp_path: Path) -> None:
    data = ["--data-dir", tmp_path]
    without_linux("prepare", "-c", ID, "--twin", "--jobs", 2, *data)
    assert ID in without_linux("verify", ID, *data)
    sample = paths.CompetitionPaths(tmp_path, ID).public / "sample_submission.csv"
    assert "valid" in without_linux("validate", sample, ID, *data)
    (graded, _) = without_linux("grade-sample", sample, ID, *data).split("\n}\n", 1)
    assert json.loads(graded + "}")["valid_submission"]
    (tmp_path / "batch.jsonl").write_text(json.dumps({"competition_id": ID, "submission_path": str(sample)}) + "\n")
    without_linux("grade", "--submission", tmp_path / "batch.jsonl", "--output-dir", tmp_path, *data)
    assert list(tmp_path.glob("*_grading_report.json"))
    assert ID in without_linux("test-competition", ID)


def test_run_groups_are_reported_shown_and_inspected(group: Path, tmp_path: Path) -> None:
    data = ["--data-dir", group.parents[1] / "data"]
    assert "dummy" in without_linux("report", group, *data)
    without_linux("report", group, *data, "--format", "html", "--output", tmp_path / "pages")
    assert (tmp_path / "pages" / "index.html").is_file()
    assert '"total_runs": 1' in without_linux("grade", group, *data)
    assert ID in without_linux("runs", "list", group)
    assert ID in without_linux("runs", "show", f"{group.name}/{ID}", "--runs-dir", group.parent)
    assert ID in without_linux("inspect", "failures", group)
    without_linux("inspect", "plagiarism", group)
    bundle = tmp_path / "group.tar.gz"
    without_linux("bundle", "make", group, "--output", bundle)
    without_linux("bundle", "verify", bundle, *data)


def test_running_agents_is_refused_in_one_line(group: Path, tmp_path: Path) -> None:
    data = ["--data-dir", group.parents[1] / "data"]
    needs = "running agents needs Linux; preparing, grading, reporting and viewing also work on this system"
    copy = shutil.copytree(group, tmp_path / "copy")
    assert without_linux("run", "--agent", "dummy", "-c", ID, *data, code=1) == f"\nError: {needs}\n"
    assert without_linux("run", "--resume", copy, code=1) == f"\nError: {needs}\n"
    assert without_linux("demo", *data, code=1) == f"\nError: {needs}\n"
    assert "running agents needs Linux" in without_linux("doctor", *data)
