"""Metrics: pure functions, arrays in, float out. Truth comes first; callers have checked what they pass.

The float is Python's or numpy's, whichever the published grader returned: scores are rounded, and on ties the two
round differently. Accuracy moves in steps of 1/n, so ties are common.
"""

from mlebench.metrics.classification import accuracy, log_loss
from mlebench.metrics.ranking import auroc, average_precision_at_k, mean_average_precision_at_k
from mlebench.metrics.regression import mean_angular_error, rmse, rmsle
from mlebench.metrics.segmentation import dice_coefficient, dice_of_runs

__all__ = [
    "accuracy",
    "auroc",
    "average_precision_at_k",
    "dice_coefficient",
    "dice_of_runs",
    "log_loss",
    "mean_angular_error",
    "mean_average_precision_at_k",
    "rmse",
    "rmsle",
]
