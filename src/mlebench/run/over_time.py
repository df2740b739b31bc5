"""Score over time: the submissions kept during runs, graded once all runs of the group have ended."""

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from mlebench.core.outcomes import MODEL_UNAVAILABLE
from mlebench.grade.in_process import Ungraded
from mlebench.grade.limits import DEFAULT_LIMITS, GradingLimits
from mlebench.grade.submission import Workers
from mlebench.records import now, write
from mlebench.records.run_groups import Group, Run
from mlebench.records.snapshots import SnapshotScore, SnapshotScores, read_snapshot_scores
from mlebench.run.regrade import held_for_grading, job_of, require_ended
from mlebench.scoring import CompetitionReport

Tracker = Callable[[list[Run]], Iterable[Run]]


def grade_snapshots(
    group: Group, track: Tracker = iter, *, jobs: int = 1, limits: GradingLimits = DEFAULT_LIMITS
) -> list[SnapshotScores]:
    """Grade each run's earlier submissions, and write the scores beside them. Every grade is logged."""
    require_ended(group)
    snapshots = {run.paths.root: sorted(run.paths.snapshots.glob("*.csv")) for run in group.runs() if not run.fault}
    runs = [run for run in group.runs() if snapshots.get(run.paths.root) and run.record.ended != MODEL_UNAVAILABLE]
    with Workers(jobs) as workers:
        waiting = {
            path: workers.grade(job_of(run, group, path, limits)) for run in runs for path in snapshots[run.paths.root]
        }
        done = []
        for run in track(runs):
            points = [_point(path, waiting[path].result()) for path in snapshots[run.paths.root]]
            record = run.record
            graded = SnapshotScores(
                run_id=record.run_id, competition=record.competition, graded_at=now(), points=points
            )
            with held_for_grading(run):
                write(run.paths.over_time, graded)
            done.append(graded)
    return done


def _point(path: Path, outcome: CompetitionReport | Ungraded) -> SnapshotScore:
    report = outcome._asdict() if isinstance(outcome, Ungraded) else outcome.to_dict()
    return msgspec.convert(report | {"seconds": float(path.stem)}, SnapshotScore)


def score_over_time(run: Run) -> list[SnapshotScore]:
    """Scores of the submissions that were kept during a run, earliest first; those of its group are graded if need be.

    Raises PrerequisiteError if runs of the group have not ended.
    """
    if read_snapshot_scores(run) is None:
        grade_snapshots(Group.read(run.paths.group.root))
    return read_snapshot_scores(run) or []
