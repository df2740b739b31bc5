"""What standings need to know about competitions, each looked up once."""

import math
from functools import cache

from mlebench.core.errors import PrerequisiteError
from mlebench.grade.badges import badges_in_text, badges_of
from mlebench.grade.leaderboard import Leaderboard, normalised
from mlebench.records.report import Badge, Report
from mlebench.registry import Competition, Registry
from mlebench.scoring import read_leaderboard


class CompetitionLookup:
    """Looks up competitions; one that is unknown here gives None."""

    def __init__(self, registry: Registry):
        self._registry = registry
        self._competition = cache(self._find)
        self._leaderboard = cache(self._find_leaderboard)

    def category(self, id: str) -> str | None:
        competition = self._competition(id)
        return competition.category if competition else None

    def competition_badges(self, id: str) -> tuple[Badge, ...]:
        """The badges that every score in a competition has."""
        competition = self._competition(id)
        return badges_of(competition.known_issues) if competition else ()

    def badges(self, report: Report) -> tuple[Badge, ...]:
        """The badges of a score; as its report states them if the competition is unknown here."""
        competition = self._competition(report.competition_id)
        if competition is None:
            return badges_in_text(report.badges)
        return badges_of(competition.known_issues, report.test_units, report.medal_holds)

    def percentile(self, report: Report) -> float | None:
        """The share of human teams with a worse score, as the report states it or, if it does not, from its score.

        It is 0 without a score.
        """
        if report.percentile is not None:
            return report.percentile
        leaderboard, score = self._leaderboard(report.competition_id), report.score
        if leaderboard is None:
            return None
        return 0.0 if score is None or math.isnan(score) else leaderboard.percentile(score)

    def normalised(self, report: Report) -> float | None:
        """0 is the sample submission's score on real data, 1 the gold threshold; as stated or from the score.

        It is 0 without a score.
        """
        if report.normalised_score is not None:
            return report.normalised_score
        competition = self._competition(report.competition_id)
        gold, score = report.gold_threshold, report.score
        if competition is None or gold is None:
            return None
        sign = -1 if competition.lower_is_better else 1
        if normalised(gold, competition.sample_score, gold, sign) is None:
            return None
        return 0.0 if score is None else normalised(score, competition.sample_score, gold, sign) or 0.0

    def _find(self, id: str) -> Competition | None:
        try:
            return self._registry.get_competition(id)
        except PrerequisiteError:
            return None

    def _find_leaderboard(self, id: str) -> Leaderboard | None:
        competition = self._competition(id)
        try:
            scores = read_leaderboard(competition.leaderboard) if competition else []
        except PrerequisiteError:
            return None
        return Leaderboard(scores, lower=competition.lower_is_better) if competition and scores else None
