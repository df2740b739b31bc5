"""What standings need to know about competitions, each looked up once."""

import math
from functools import cache

from mlebench.core.errors import PrerequisiteError
from mlebench.grade.board import Board, normalised
from mlebench.records.report import Report
from mlebench.registry import Competition, Registry
from mlebench.scoring import read_leaderboard


class CompetitionLookup:
    """Looks up competitions; one that is unknown here gives None."""

    def __init__(self, registry: Registry):
        self._registry = registry
        self._competition = cache(self._find)
        self._board = cache(self._find_board)

    def category(self, id: str) -> str | None:
        found = self._competition(id)
        return found.category if found else None

    def percentile(self, report: Report) -> float | None:
        """The share of human teams with a worse score, as the report states it or, if it does not, from its score.

        It is 0 without a score.
        """
        if report.percentile is not None:
            return report.percentile
        board, score = self._board(report.competition_id), report.score
        if board is None:
            return None
        return 0.0 if score is None or math.isnan(score) else board.percentile(score)

    def normalised(self, report: Report) -> float | None:
        """0 is the sample submission's score on real data, 1 the gold threshold; as stated or from the score.

        It is 0 without a score.
        """
        if report.normalised_score is not None:
            return report.normalised_score
        found = self._competition(report.competition_id)
        gold, score = report.gold_threshold, report.score
        if found is None or gold is None:
            return None
        sign = -1 if found.lower_is_better else 1
        if normalised(gold, found.sample_score, gold, sign) is None:
            return None
        return 0.0 if score is None else normalised(score, found.sample_score, gold, sign) or 0.0

    def _find(self, id: str) -> Competition | None:
        try:
            return self._registry.get_competition(id)
        except PrerequisiteError:
            return None

    def _find_board(self, id: str) -> Board | None:
        found = self._competition(id)
        try:
            scores = read_leaderboard(found.leaderboard) if found else []
        except PrerequisiteError:
            return None
        return Board(scores, lower=found.lower_is_better) if found and scores else None
