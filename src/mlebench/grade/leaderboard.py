"""Where a score stands: among human teams, between the sample submission and gold, and compared with perfection."""

import math
from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from mlebench.registry import Competition

# The names of metrics whose best value is 1 if higher is better, or 0 if lower is better.
# Left out: metrics without a bound, and those where even the truth does not reach it.
# fmt: off
REACH_ONE_OR_ZERO = frozenset({
    "KL-divergence", "MAP@5", "accuracy", "auc-roc", "auroc-multi-label", "average-haversine-distance",
    "column-wise ROC AUC", "column-wise-spearman", "dice-coefficient", "dice-hausdorff-combo", "f0.5-score", "f1-score",
    "global-dice", "jaccard-similarity", "jigsaw-unintended-bias-in-toxicity-classification-score", "kendall-tau",
    "label-ranking-average-precision", "levenhstein-distance", "levenshtein-distance", "log-loss", "macro-f1-score",
    "map-at-5", "matthews-correlation-coefficient", "mean-absolute-error", "mean-angular-error",
    "mean-average-precision", "mean-column-wise-rmsle", "mean-column-wise-roc-auc",
    "mean-precision-intersection-over-union-at-different-thresholds", "micro-f1-score",
    "multi-class-classification-accuracy", "multi-class-log-loss", "pearson-correlation-coefficient",
    "probabilistic-f1-score", "quadratic-weighted-kappa", "root-mean-squared-error", "root_mean_squared_error",
    "top-1-classification-error", "weighted-auroc", "weighted-multi-label-log-loss", "word-level-jaccard-score",
})
# fmt: on
BEYOND_BEST = "beyond the best human score"
AT_OPTIMUM = "at the metric's optimum"


class Leaderboard:
    """A human leaderboard that counts teams with a worse score; equal scores are not worse."""

    def __init__(self, scores: Iterable[float], *, lower: bool):
        self._sign = -1 if lower else 1
        self._scores = sorted(self._sign * score for score in scores)  # worst first
        self.teams = len(self._scores)

    def beaten(self, score: float) -> int:
        return bisect_left(self._scores, self._sign * score)

    def percentile(self, score: float) -> float:
        """The share of teams that the score beats."""
        return self.beaten(score) / self.teams


class Position(NamedTuple):
    """Where a score stands; all None without a score, or where it is NaN."""

    teams_beaten: int | None = None
    percentile: float | None = None
    normalised_score: float | None = None
    suspicious: str | None = None

    @classmethod
    def of(cls, score: float | None, competition: Competition, scores: list[float], gold: float | None) -> "Position":
        if score is None or math.isnan(score):
            return cls()
        sign = -1 if competition.lower_is_better else 1
        humans = Leaderboard(scores, lower=competition.lower_is_better)
        doubts = {
            BEYOND_BEST: humans.beaten(score) == humans.teams,
            AT_OPTIMUM: competition.grader.name in REACH_ONE_OR_ZERO and score == max(0, sign),
        }
        return cls(
            teams_beaten=humans.beaten(score),
            percentile=humans.percentile(score),
            normalised_score=normalised(score, competition.sample_score, gold, sign),
            suspicious=" and ".join(text for text, applies in doubts.items() if applies) or None,
        )


def normalised(score: float, sample: float | None, gold: float | None, sign: int) -> float | None:
    """0 for the sample submission, 1 for gold; None unless gold is better than the sample submission."""
    if sample is None or gold is None or not sign * gold > sign * sample:
        return None
    share = (score - sample) / (gold - sample)
    return share if math.isfinite(share) else None
