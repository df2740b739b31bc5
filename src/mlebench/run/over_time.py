"""Score over time: the submissions kept during runs, graded once all runs of the group have ended."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlebench.grade.row import DEFAULT_LIMITS, Limits, Unjudged
from mlebench.grade.worker import Workers
from mlebench.outcomes import MODEL_UNAVAILABLE
from mlebench.records import Record, now
from mlebench.run.records import Group, Run
from mlebench.run.regrade import held, job_of, require_ended
from mlebench.scoring import CompetitionReport

Tracker = Callable[[list[Run]], Iterable[Run]]
# The parts of each report that a curve is drawn from. What they have in common is in the run's own report.
FIGURES = (
    "status", "reason", "score", "gold_medal", "silver_medal", "bronze_medal", "any_medal", "above_median",
    "valid_submission", "teams_beaten", "percentile", "normalised_score", "submission_sha256",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class OverTime(Record):
    run_id: str
    competition: str
    graded_at: str
    points: list[dict[str, Any]]  # by time: `seconds` since the run began, and FIGURES


def grade_snapshots(
    group: Group, track: Tracker = iter, *, jobs: int = 1, limits: Limits = DEFAULT_LIMITS
) -> list[OverTime]:
    """Grade each run's earlier submissions, and write the scores beside them. Every grade is logged."""
    require_ended(group)
    kept = {run.paths.root: sorted(run.paths.snapshots.glob("*.csv")) for run in group.runs()}
    runs = [run for run in group.runs() if kept[run.paths.root] and run.record.ended != MODEL_UNAVAILABLE]
    with Workers(jobs) as workers:
        waiting = {
            path: workers.grade(job_of(run, group, path, limits)) for run in runs for path in kept[run.paths.root]
        }
        done = []
        for run in track(runs):
            points = [_point(path, waiting[path].result()) for path in kept[run.paths.root]]
            record = run.record
            graded = OverTime(run_id=record.run_id, competition=record.competition, graded_at=now(), points=points)
            with held(run):
                graded.write(run.paths.over_time)
            done.append(graded)
    return done


def _point(path: Path, outcome: CompetitionReport | Unjudged) -> dict[str, Any]:
    report = outcome._asdict() if isinstance(outcome, Unjudged) else outcome.to_dict()
    return {"seconds": float(path.stem), **{name: report.get(name) for name in FIGURES}}


def read_over_time(run: Run) -> list[dict[str, Any]] | None:
    """The points of a run; None if its snapshots were not graded."""
    return OverTime.read(run.paths.over_time).points if run.paths.over_time.is_file() else None
