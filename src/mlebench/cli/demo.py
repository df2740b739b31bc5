"""mlebench demo"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlebench.cli.options import data_dir_option, registry_at
from mlebench.cli.output import log_line, print_table, track
from mlebench.core import paths

if TYPE_CHECKING:
    from mlebench.agents import Agent
    from mlebench.records.run_groups import Group
    from mlebench.registry import Registry

AGENTS = ("dummy", "baseline")

# One of each kind: tabular, text, images in zips, records, masks, given split, nested archives, grouped text; then
# boxes, ranked labels, a sample submission inside an archive, and groups of rows.
COMPETITIONS = (
    "spaceship-titanic",
    "spooky-author-identification",
    "aerial-cactus-identification",
    "random-acts-of-pizza",
    "hubmap-kidney-segmentation",
    "detecting-insults-in-social-commentary",
    "nomad2018-predict-transparent-conductors",
    "text-normalization-challenge-english-language",
    "kuzushiji-recognition",
    "whale-categorization-playground",
    "statoil-iceberg-classifier-challenge",
    "ventilator-pressure-prediction",
)


@click.command()
@data_dir_option
def command(data_dir: Path | None) -> None:
    """Make twins, prepare them, run agents on them in a sandbox, grade what they submit, and write pages about it.

    The agents are dummy, which submits the sample submission, and baseline, if installed, which trains small models.
    """
    from mlebench.data.pipeline import prepare
    from mlebench.data.sources import TwinSource

    registry = registry_at(data_dir, twin=True)
    for id in track(COMPETITIONS, "twin of {}".format):
        prepare(registry.get_competition(id), TwinSource())
    sandbox = _sandbox()
    groups = [_run(agent, registry, sandbox) for agent in _agents()]
    _print(groups)
    runs = paths.default_runs_dir(registry.get_data_dir())
    log_line(f"Twins are synthetic: these scores say nothing about real data. The runs are in {runs}")
    log_line(f"The twins are in {registry.get_data_dir()}: other commands find them there with --data-dir")
    log_line(f"Pages to look at: {_write_pages(groups, registry, paths.pages_dir(runs))}")


def _agents() -> "list[Agent]":
    """The agents that can run here."""
    from mlebench.agents import load_agent, venv_fault

    agents = [load_agent(name) for name in AGENTS]
    for agent in agents:
        if fault := venv_fault(agent):
            log_line(f"The agent {agent.name} is left out: {fault}")
    return [agent for agent in agents if not venv_fault(agent)]


def _run(agent: "Agent", registry: "Registry", sandbox: str) -> "Group":
    from mlebench.cli.live import live_view
    from mlebench.run import Progress, Request, run
    from mlebench.run.machine import cpu_count

    class Live(Progress):
        def watch(self, group: "Group") -> AbstractContextManager[Callable[[], None]]:
            return live_view(group)

    log_line(f"Running the agent {agent.name} in the sandbox {sandbox}")
    request = Request(
        agent=agent.name,
        competitions=COMPETITIONS,
        data_dir=registry.get_data_dir(),
        sandbox=sandbox,
        workers=min(2, cpu_count()),
        time_limit=300,
    )
    return run(request, Live())


def _sandbox() -> str:
    from mlebench.core.errors import PrerequisiteError
    from mlebench.sandbox import UNISOLATED, best_sandbox

    try:
        return best_sandbox().name
    except PrerequisiteError as error:
        log_line(f"{error}. That will do for this demo, whose agents are harmless.")
        return UNISOLATED.name


def _write_pages(groups: "list[Group]", registry: "Registry", folder: Path) -> Path:
    from mlebench.report import make_standings
    from mlebench.web import write_pages

    return write_pages(
        make_standings(groups), groups, folder, registry=registry, track=lambda names: track(names, "pages".format)
    )


def _print(groups: "list[Group]") -> None:
    from mlebench.cli.live import medal_text

    rows = []
    for runs in zip(*(group.runs() for group in groups), strict=True):
        for group, run in zip(groups, runs, strict=True):
            report = run.record.report
            thresholds = [
                report and getattr(report, f"{name}_threshold") for name in ("gold", "silver", "bronze", "median")
            ]
            what = [run.record.competition, group.record.agent.name, run.record.ended, report and report.score]
            rows.append([*what, *thresholds, medal_text(report)])
    print_table(["competition", "agent", "ended", "score", "gold", "silver", "bronze", "median", "medal"], rows)
