"""The grading report of one submission, as JSON states it: ours, the reference's, or others' in that form."""

import msgspec

from mlebench.records.base import Integer, Name, Text

BADGES = ("leak", "contamination", "low_power")


class Badge(msgspec.Struct, frozen=True, kw_only=True):
    """A reason to look twice at a medal. It is never a verdict: docs/understanding/profile-v2.md."""

    kind: Text  # one of BADGES
    issue: Text | None = None  # the id of the competition's known issue; None for `low_power`
    text: Text

    @property
    def label(self) -> str:
        """What is shown beside a medal."""
        return self.issue or self.kind


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A report in a record or a grading report. None: it does not say.

    The reference's sixteen fields come first, in its order. `mlebench.scoring.CompetitionReport` explains all of them.
    Scores may be infinite in the reference's files.
    """

    competition_id: Name
    score: float | None = None
    gold_threshold: float | None = None
    silver_threshold: float | None = None
    bronze_threshold: float | None = None
    median_threshold: float | None = None
    any_medal: bool | None = None
    gold_medal: bool | None = None
    silver_medal: bool | None = None
    bronze_medal: bool | None = None
    above_median: bool | None = None
    submission_exists: bool | None = None
    valid_submission: bool | None = None
    is_lower_better: bool | None = None
    created_at: Text | None = None
    submission_path: Text | None = None
    profile: Text | None = None
    source: Text | None = None
    status: Text | None = None
    reason: Text | None = None
    schema: int = 1
    mlebench: Text | None = None
    graded_at: Text | None = None
    submission_sha256: Text | None = None
    data: Text | None = None
    description: Text | None = None
    competition_version: Integer | None = None
    agent: Text | None = None
    seed: Integer | None = None
    run_id: Text | None = None
    graded_during_run: bool | None = None
    teams: Integer | None = None
    teams_beaten: Integer | None = None
    percentile: float | None = None
    normalised_score: float | None = None
    suspicious: Text | None = None
    known_issues: Integer | None = None
    score_low: float | None = None
    score_high: float | None = None
    medal_holds: float | None = None
    board: Text | None = None
    release: Text | None = None
    test_units: Integer | None = None
    badges: Text | None = None
    groups: Text | None = None
    seen: Text | None = None

    @property
    def has_no_medals(self) -> bool:
        """Whether the profile withholds all medals of this competition, so that none could be earned."""
        return self.profile not in (None, "v1") and {self.gold_medal, self.silver_medal, self.bronze_medal} == {None}

    @property
    def medal(self) -> str | None:
        """`gold`, `silver` or `bronze`, if it earned one."""
        medals = {"gold": self.gold_medal, "silver": self.silver_medal, "bronze": self.bronze_medal}
        return next((name for name, earned in medals.items() if earned), None)
