"""mlebench demo"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mlebench import paths
from mlebench.cli.common import data_dir_option, print_table, registry_at, say, track

if TYPE_CHECKING:
    from mlebench.run.records import Group
    from mlebench.sandbox import Sandbox

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
    """Make twins, prepare them, run the dummy agent on them in a sandbox, and grade what it submits."""
    from mlebench.agents import load_agent
    from mlebench.cli.live import live_view
    from mlebench.data.pipeline import prepare
    from mlebench.data.sources import TwinSource
    from mlebench.run.group import finish, unfinished
    from mlebench.run.local import LocalExecutor
    from mlebench.run.machine import Wishes, cpu_count
    from mlebench.run.plan import Request, plan
    from mlebench.run.records import Group

    registry = registry_at(data_dir, twin=True)
    for id in track(COMPETITIONS, "twin of {}".format):
        prepare(registry.get_competition(id), TwinSource())
    sandbox = _sandbox()
    say(f"Running the agent dummy in the sandbox {sandbox.name}")
    workers = min(2, cpu_count())
    request = Request(
        agent=load_agent("dummy"),
        agent_source="dummy",
        competitions=COMPETITIONS,
        registry=registry,
        runs_dir=paths.default_runs_dir(registry.get_data_dir()),
        sandbox=sandbox,
        workers=workers,
        wishes=Wishes(seconds=300),
    )
    group = plan(request)
    with live_view(group) as tick:
        LocalExecutor(workers).run(unfinished(group), tick)
    finish(Group.read(group.paths.root))
    _print(group)
    say(f"Twins are synthetic: these scores say nothing about real data. The runs are in {group.paths.root}")


def _sandbox() -> "Sandbox":
    from mlebench.errors import PrerequisiteError
    from mlebench.sandbox import best_sandbox, sandbox_named

    try:
        return best_sandbox()
    except PrerequisiteError as error:
        say(f"{error}. That will do for this demo, whose agent is harmless.")
        return sandbox_named("process")


def _print(group: "Group") -> None:
    from mlebench.cli.live import medal

    rows = []
    for run in group.runs():
        report = run.record.report or {}
        thresholds = [report.get(f"{name}_threshold") for name in ("gold", "silver", "bronze", "median")]
        rows.append([run.record.competition, run.record.ended, report.get("score"), *thresholds, medal(report)])
    print_table(["competition", "ended", "score", "gold", "silver", "bronze", "median", "medal"], rows)
