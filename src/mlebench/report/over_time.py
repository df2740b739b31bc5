"""Score over time, from the submissions that were kept while a run went on."""

from collections.abc import Iterator
from typing import NamedTuple

from mlebench.errors import PrerequisiteError
from mlebench.grade import grade_csv
from mlebench.registry import Registry
from mlebench.run.records import Group, Run
from mlebench.scoring import CompetitionReport, RunInfo


class Point(NamedTuple):
    seconds: float  # since the run began
    report: CompetitionReport


def grade_snapshots(run: Run) -> Iterator[Point]:
    """Grade what a run had submitted at each moment. Every grade is logged; a run that goes on is refused."""
    if not run.record.is_final:
        raise PrerequisiteError(f"{run.paths.root.name} has not ended: what it submits is graded afterwards")
    group = Group.read(run.paths.group.root).record
    competition = Registry(group.data_dir, group.profile).get_competition(run.record.competition)
    info = RunInfo(run_id=run.record.run_id, agent=group.agent.get("name"), seed=run.record.seed)
    for path in sorted(run.paths.snapshots.glob("*.csv")):
        yield Point(float(path.stem), grade_csv(path, competition, info))
