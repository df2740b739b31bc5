"""A sandbox backend is one class: whatever asks about backends goes by its attributes."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.groups import plan_group
from support.run_fixtures import SUBMIT

from mlebench.cli.run import _say_sandbox
from mlebench.core.errors import PrerequisiteError
from mlebench.records.run_groups import Group
from mlebench.registry import Competition
from mlebench.run.execute import execute
from mlebench.run.retry_rules import FINAL
from mlebench.sandbox import BACKENDS
from mlebench.sandbox.base import Bind, Launch, Sandbox, Task


class Fifth(Sandbox):
    """Runs programs with a changed environment, in a folder of its own, by a runtime of its own."""

    name = "fifth"
    noun = "a changed environment"
    is_isolated = False
    takes_runtimes = True

    def fault(self, task: Task | None = None) -> str | None:
        return "it knows no runtime but echo" if task and task.runtime not in (None, "echo") else None

    def launch(self, task: Task) -> Launch:
        argv = ("env", f"--chdir={task.work}", f"RUNTIME={task.runtime}", *task.command)
        return Launch(argv=argv, env=task.env, writable=(str(task.work),))

    def remove_leftovers(self, name: str) -> None:
        pass

    def conditions(self, task: Task) -> dict[str, Any]:
        return {"version": "fifth 1.0", "runtime": task.runtime}

    def home(self, work: Path) -> str:
        return str(work / "home")

    def path_of(self, bind: Bind) -> str:
        return str(bind.source)

    def search_path(self, image: str | None) -> list[str]:
        return [*super().search_path(image), "/fifth/bin"]


@pytest.fixture(autouse=True)
def _fifth_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, Fifth.name, Fifth)


def _planned(titanic: Competition, folder: Path, program: str, runtime: str) -> Group:
    config = folder / "config.json"
    config.write_text(json.dumps({"runtime": runtime}))
    return plan_group(titanic, folder / "runs", agent_command=program, sandbox="fifth", container_config=config)


def test_a_fifth_backend_is_planned_run_graded_and_recorded(
    titanic: Competition, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    group = _planned(titanic, tmp_path, f"{SUBMIT}; echo $RUNTIME $PATH; pwd; echo $HOME", "echo")
    _say_sandbox(group.record)
    (planned,) = group.runs()
    assert execute(planned.paths.root) == FINAL
    (run,) = group.runs()
    assert (group.record.sandbox, group.record.runtime) == ("fifth", "echo")
    assert (run.record.ended, run.record.report and run.record.report.status) == ("finished", "graded")
    conditions = run.record.conditions
    assert (conditions.sandbox, conditions.version, conditions.runtime) == ("fifth", "fifth 1.0", "echo")
    assert (conditions.sealed, conditions.unsealed_by) == (False, ["the sandbox is a changed environment"])
    environment, work, home = run.paths.log.read_text().splitlines()
    assert environment.startswith("echo ")
    assert environment.endswith(":/fifth/bin")
    assert home == f"{work}/home"
    assert "Warning: a changed environment isolates nothing" in capfd.readouterr().err


def test_a_backend_says_itself_what_it_cannot_do(titanic: Competition, tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="sandbox fifth cannot be used: it knows no runtime but echo"):
        _planned(titanic, tmp_path, "true", "runsc")
