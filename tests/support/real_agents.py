"""Agents with their real packages, in sandboxes, against scripted models behind the gateway.

Their venvs are made once, in MLEBENCH_VENVS_DIR if that is set, and only if MLEBENCH_REAL_AGENTS=1.
"""

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from mlebench.agents import load_agent
from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.grade import grade_csv
from mlebench.records.run_groups import Group, Run
from mlebench.records.timeline import read_timeline
from mlebench.registry import Registry
from support.records import report_of
from support.sandboxes import require
from support.scripted_models import playing

TWINS = ("nomad2018-predict-transparent-conductors", "spaceship-titanic", "tabular-playground-series-dec-2021")
VENVS = os.environ.get("MLEBENCH_VENVS_DIR")  # before a fixture hides it
Play = Callable[..., Group]
real = pytest.mark.skipif(
    os.environ.get("MLEBENCH_REAL_AGENTS") != "1", reason="the agent's packages are installed if MLEBENCH_REAL_AGENTS=1"
)


def venvs_with(agent: str, factory: pytest.TempPathFactory) -> Path:
    """A folder with the agent's venv. Call it while the environment is still the user's: pip has a cache."""
    venvs = Path(VENVS) if VENVS else factory.mktemp("venvs")
    command = [sys.executable, "-P", "-m", "mlebench", "agents", "install", agent, "--python", _python(agent)]
    done = subprocess.run(
        command, env={**os.environ, "MLEBENCH_VENVS_DIR": str(venvs)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return venvs


def _python(agent: str) -> str:
    """A Python of the version it wants: ours, one on the path, or one of pyenv's, whose shims may refuse."""
    version = load_agent(agent).python
    if version is None:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path(pwd.getpwuid(os.geteuid()).pw_dir) / ".pyenv")
    for found in (
        sys.executable,
        f"python{version}",
        *map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python"))),
    ):
        ask = [found, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        if shutil.which(found) and subprocess.run(ask, capture_output=True, text=True).stdout.strip() == version:
            return found
    pytest.skip(f"{agent} needs Python {version}, which is not on this machine")


def with_programs(agent: str, factory: pytest.TempPathFactory) -> Path:
    """A folder with the agent's npm packages, from MLEBENCH_NPM_PACKS if that is set; skips if there is none."""
    venvs = Path(VENVS) if VENVS else factory.getbasetemp() / "programs"
    packed = os.environ.get("MLEBENCH_NPM_PACKS")
    command = [sys.executable, "-P", "-m", "mlebench", "agents", "install", agent]
    done = subprocess.run(
        [*command, *(["--from", packed] if packed else [])],
        env={**os.environ, "MLEBENCH_VENVS_DIR": str(venvs)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"{agent} cannot be installed here: {done.stderr.strip()}")
    return venvs


def prepared(factory: pytest.TempPathFactory) -> Registry:
    registry = Registry(factory.mktemp("twins"))
    for id in TWINS:
        prepare(registry.get_competition(id), TwinSource())
    return registry


def with_knobs(agent: str, tmp_path: Path, **knobs: Any) -> str:
    """A copy of a built-in agent with other settings. It shares the venv, which is named after the folder."""
    folder = tmp_path / "agents" / agent
    shutil.copytree(load_agent(agent).folder, folder)
    entry = yaml.safe_load((folder / "config.yaml").read_text())[agent]
    entry["kwargs"] |= {name.replace("_", "-"): value for name, value in knobs.items()}
    (folder / "config.yaml").write_text(yaml.safe_dump({agent: entry}))
    return str(folder)


def play(
    mlebench: Any, registry: Registry, venvs: Path, tmp_path: Path, agent: str, script: Any, *options: str
) -> list[Run]:
    """Run an agent against a script, in bubblewrap unless told otherwise."""
    sandbox = "docker" if "docker" in options else "bubblewrap"
    require(sandbox)
    named = ["--agent", agent, "--data-dir", str(registry.get_data_dir()), "--runs-dir", str(tmp_path / "runs")]
    limits = ["--sandbox", sandbox, "--time-limit", "300", "--memory", "3g", "--network", "model"]
    with playing(script, tmp_path) as url:
        chosen = [word for word in options if word != "docker"]
        models = [] if "--model" in chosen else ["--model", "scripted"]
        env = {"MLEBENCH_VENVS_DIR": str(venvs)}
        mlebench("run", *named, *limits, "--endpoint", url, *models, *chosen, env=env)
    (made,) = (tmp_path / "runs").iterdir()
    return list(Group.read(made).runs())


def on(*ids: str) -> list[str]:
    return [word for id in ids for word in ("-c", id)]


def require_better_than_the_sample(run: Run, registry: Registry) -> None:
    competition = registry.get_competition(run.record.competition)
    report = report_of(run)
    sample = grade_csv(competition.sample_submission, competition)
    assert (run.record.ended, report.status) == ("finished", "graded"), run.paths.log.read_text()
    assert report.score is not None
    assert sample.score is not None
    better = report.score < sample.score if report.is_lower_better else report.score > sample.score
    assert better, (report.score, sample.score)
    assert run.record.conditions.sealed


def events_of(run: Run, kind: str) -> list[Any]:
    """Events of a kind that the agent itself reported."""
    return [event for event in read_timeline(run).events if (event.kind, event.source) == (kind, "agent")]


def require_events(run: Run, *kinds: str) -> None:
    """Check that the run's story has these kinds from the agent, and the gateway's count of calls."""
    whole = read_timeline(run)
    assert whole.left_out == []
    sources = {(event.kind, event.source) for event in whole.events}
    assert sources >= {(kind, "agent") for kind in kinds} | {("call", "gateway"), ("submission", "host")}


def the_end(run: Run) -> str:
    (end,) = events_of(run, "end")
    return f"{end.title} {end.text}"
