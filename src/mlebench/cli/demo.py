"""mlebench demo"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlebench.cli.console import log_line, print_table, track
from mlebench.cli.options import data_dir_option, registry_at
from mlebench.core import paths

if TYPE_CHECKING:
    from mlebench.agents import Agent
    from mlebench.records.run_groups import Group, Run
    from mlebench.registry import Registry

AGENTS = {"dummy": "submits the sample submission as it is", "baseline": "trains small models"}
NEXT_COMMANDS = {
    "You have an agent": "mlebench agents new my-agent",
    "You want real data": "mlebench prepare --lite --check",
    "You write competitions": "mlebench new-competition my-competition",
}

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
    Runs and pages are in a folder beside the twins, and replace those of the last demo.
    """
    from mlebench.records.run_groups import groups_in
    from mlebench.sandbox import require_linux

    require_linux()
    registry = registry_at(data_dir, twin=True)
    folder = paths.demo_dir(registry.get_data_dir())
    runs_dir, pages = paths.runs_below(folder), paths.pages_below(folder)
    earlier = groups_in(runs_dir) if runs_dir.is_dir() else []
    sandbox, (first, *more_agents) = _sandbox(), _agents()
    groups = [_prepare_and_run(first, COMPETITIONS[:1], registry, sandbox, runs_dir)]
    shutil.rmtree(pages, ignore_errors=True)
    _show_first(groups[0], _write_pages(groups, registry, pages))
    groups.append(_prepare_and_run(first, COMPETITIONS[1:], registry, sandbox, runs_dir))
    groups.extend(_prepare_and_run(agent, COMPETITIONS, registry, sandbox, runs_dir) for agent in more_agents)
    _remove(earlier)
    _print(groups)
    page = _write_pages(groups, registry, pages)
    log_line("Twins are synthetic: these scores say nothing about real data.")
    log_line(f"Pages to look at: {page}")
    log_line(f"The twins are in {registry.get_data_dir()}, the runs in {runs_dir}")
    log_line("\nWhat next?")
    for who, what in NEXT_COMMANDS.items():
        log_line(f"  {who + ':':<24}{what}")


def _agents() -> "list[Agent]":
    """The agents that can run here; the first one always can."""
    from mlebench.agents import install_fault, load_agent

    agents = [load_agent(name) for name in AGENTS]
    for agent in agents:
        if fault := install_fault(agent):
            log_line(f"The agent {agent.name} is left out: {fault}")
    return [agent for agent in agents if not install_fault(agent)]


def _prepare_and_run(
    agent: "Agent", competitions: Sequence[str], registry: "Registry", sandbox: str, runs_dir: Path
) -> "Group":
    from mlebench.cli.live import live_view
    from mlebench.core.processes import cpu_count
    from mlebench.data.pipeline import prepare
    from mlebench.data.sources import TwinSource
    from mlebench.run import GroupProgress, Request, run

    class Live(GroupProgress):
        def watch(self, group: "Group") -> AbstractContextManager[Callable[[], None]]:
            return live_view(group)

    for id in track(competitions, "twin of {}".format):
        prepare(registry.get_competition(id), TwinSource())
    log_line(f"Running the agent {agent.name} in the sandbox {sandbox}")
    request = Request(
        agent=agent.name,
        competitions=competitions,
        data_dir=registry.get_data_dir(),
        runs_dir=runs_dir,
        sandbox=sandbox,
        workers=min(2, cpu_count()),
        time_limit=300,
    )
    return run(request, Live())


def _sandbox() -> str:
    from mlebench.core.errors import PrerequisiteError
    from mlebench.sandbox import ON_NODES, UNISOLATED, best_sandbox

    try:
        return best_sandbox().name
    except PrerequisiteError:
        log_line(f"No sandbox works here: {ON_NODES().fault()}.")
        if shutil.which("bwrap") is None:
            log_line("Debian, Ubuntu: sudo apt install bubblewrap. Fedora: sudo dnf install bubblewrap.")
        log_line("The agents of this demo are harmless, so they run without one.")
        return UNISOLATED.name


def _show_first(group: "Group", page: Path) -> None:
    """The first result, while the others are being made."""
    for run in group.runs():
        if report := run.record.report:
            log_line(
                f"{run.record.competition}: {group.record.agent.name} scored {report.score}; on the human leaderboard, "
                f"the median is {report.median_threshold} and bronze begins at {report.bronze_threshold}"
            )
    log_line(f"A first page to look at: {page}")


def _remove(groups: "list[Group]") -> None:
    """Remove the groups of earlier demos, but not of one that is in progress."""
    from mlebench.records.run import RUNNING

    for group in groups:
        if not any(run.state == RUNNING for run in group.runs()):
            shutil.rmtree(group.paths.root, ignore_errors=True)


def _write_pages(groups: "list[Group]", registry: "Registry", folder: Path) -> Path:
    from mlebench.report import make_standings
    from mlebench.web import write_pages

    return write_pages(
        make_standings(groups),
        groups,
        folder,
        registry=registry,
        intro=_summary(groups),
        track=lambda names: track(names, "pages".format),
    )


def _summary(groups: "list[Group]") -> str:
    """What has happened, for the first page."""
    agents = list(dict.fromkeys(group.record.agent.name for group in groups))
    runs = [run for group in groups for run in group.runs()]
    competitions = {run.record.competition for run in runs}
    graded = sum(run.record.report is not None for run in runs)
    data = "one competition" if len(competitions) == 1 else f"{len(competitions)} competitions"
    return (
        f"mlebench demo made synthetic data of {data}, ran {' and '.join(agents)} on it in the sandbox "
        f"{groups[0].record.sandbox}, and graded {graded} submissions against the human leaderboards. "
        f"{'; '.join(f'{agent} {AGENTS[agent]}' for agent in agents)}."
    )


def _runs(groups: "list[Group]") -> "Iterator[tuple[Group, Run]]":
    """The runs of all groups, competition by competition."""
    runs = [(group, run) for group in groups for run in group.runs()]
    yield from sorted(runs, key=lambda pair: COMPETITIONS.index(pair[1].record.competition))


def _print(groups: "list[Group]") -> None:
    from mlebench.cli.live import medal_text

    rows = []
    for group, run in _runs(groups):
        report = run.record.report
        thresholds = [
            report and getattr(report, f"{name}_threshold") for name in ("gold", "silver", "bronze", "median")
        ]
        what = [run.record.competition, group.record.agent.name, run.record.ended, report and report.score]
        rows.append([*what, *thresholds, medal_text(report)])
    print_table(["competition", "agent", "ended", "score", "gold", "silver", "bronze", "median", "medal"], rows)
