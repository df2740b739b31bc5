"""The scores of a run's snapshots: the submissions that were kept while it ran."""

import msgspec

from mlebench.records.base import Name, Record, Seconds, Text, Time, read
from mlebench.records.run_groups import Run


class SnapshotScore(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a snapshot's report that a curve is drawn from."""

    seconds: Seconds  # since the agent was started
    status: Text | None = None
    reason: Text | None = None
    score: float | None = None
    gold_medal: bool | None = None
    silver_medal: bool | None = None
    bronze_medal: bool | None = None
    any_medal: bool | None = None
    above_median: bool | None = None
    valid_submission: bool | None = None
    teams_beaten: int | None = None
    percentile: float | None = None
    normalised_score: float | None = None
    submission_sha256: Text | None = None


class SnapshotScores(Record, frozen=True, kw_only=True):
    run_id: Name
    competition: Name
    graded_at: Time
    points: list[SnapshotScore]  # by time


def read_snapshot_scores(run: Run) -> list[SnapshotScore] | None:
    """The scores of a run's snapshots; None if they were not graded."""
    return read(run.paths.over_time, SnapshotScores).points if run.paths.over_time.is_file() else None
