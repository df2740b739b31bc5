import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mlebench.records.run_groups import Group
from mlebench.registry import Competition

Mlebench = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[str]"]

SUBMIT = "cp $DATA_DIR/sample_submission.csv $SUBMISSION_DIR/submission.csv"


@pytest.fixture
def mlebench(titanic: Competition, tmp_path: Path) -> Mlebench:
    """The command line, with a prepared twin and its own runs directory."""

    def call(*arguments: str, code: int | None = 0, **options: Any) -> "subprocess.CompletedProcess[str]":
        env = {**os.environ, "MLEBENCH_DATA_DIR": str(titanic.paths.data_dir), **options.pop("env", {})}
        command = [sys.executable, "-P", "-m", "mlebench", *arguments]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, **options)
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done

    return call


@pytest.fixture
def start(titanic: Competition) -> Iterator[Start]:
    """Start `mlebench` without waiting for it; whatever the test leaves running is ended."""
    started: list[subprocess.Popen[str]] = []

    def call(*arguments: str, **options: Any) -> "subprocess.Popen[str]":
        env = {**os.environ, "MLEBENCH_DATA_DIR": str(titanic.paths.data_dir), **options.pop("env", {})}
        command = [sys.executable, "-P", "-m", "mlebench", *arguments]
        settings = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": env, "text": True, **options}
        started.append(subprocess.Popen(command, **settings))
        return started[-1]

    yield call
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()


@pytest.fixture
def run(mlebench: Mlebench, titanic: Competition, tmp_path: Path) -> Callable[..., Group]:
    """Run a program as an agent on the twin, in a plain process unless told otherwise; return the group."""

    def call(program: str, *options: str, sandbox: str = "process", code: int | None = 0) -> Group:
        runs = tmp_path / "runs"
        before = set(runs.iterdir()) if runs.exists() else set()
        named = [
            *(["--agent-command", program] if program else []),
            "-c",
            titanic.id,
            "--sandbox",
            sandbox,
            "--runs-dir",
            str(runs),
        ]
        mlebench("run", *named, "--time-limit", "60", *options, code=code)
        (folder,) = set(runs.iterdir()) - before
        return Group.read(folder)

    return call


def reports_of(group: Group) -> list[dict[str, Any]]:
    (path,) = group.paths.root.glob("*_grading_report.json")
    return json.loads(path.read_text())["competition_reports"]
