"""Metrics: pure functions, arrays in, float out. Truth comes first; callers have checked what they pass.

The float is Python's or numpy's, whichever the published grader returned: scores are rounded, and on ties the two
round differently. Accuracy moves in steps of 1/n, so ties are common.
"""

from mlebench.metrics.classification import (
    accuracy,
    log_loss,
    matthews_correlation,
    micro_f1_of_tags,
    quadratic_weighted_kappa,
)
from mlebench.metrics.detection import Boxes, Points, points_in_boxes_f1
from mlebench.metrics.ranking import (
    auroc,
    average_precision_at_k,
    bias_auroc,
    mean_average_precision_at_k,
    mean_column_auroc,
)
from mlebench.metrics.regression import (
    mean_absolute_error,
    mean_angular_error,
    mean_column_spearman,
    pearson,
    rmse,
    rmsle,
)
from mlebench.metrics.segmentation import dice_coefficient, dice_of_runs
from mlebench.metrics.text import mean_levenshtein, word_jaccard

__all__ = [
    "Boxes",
    "Points",
    "accuracy",
    "auroc",
    "average_precision_at_k",
    "bias_auroc",
    "dice_coefficient",
    "dice_of_runs",
    "log_loss",
    "matthews_correlation",
    "mean_absolute_error",
    "mean_angular_error",
    "mean_average_precision_at_k",
    "mean_column_auroc",
    "mean_column_spearman",
    "mean_levenshtein",
    "micro_f1_of_tags",
    "pearson",
    "points_in_boxes_f1",
    "quadratic_weighted_kappa",
    "rmse",
    "rmsle",
    "word_jaccard",
]
