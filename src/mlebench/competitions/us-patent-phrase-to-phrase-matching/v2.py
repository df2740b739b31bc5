"""Predictions that are all the same have a correlation of 0; every cell must be a finite number (G19)."""

import pandas as pd

from mlebench.kit import align
from mlebench.metrics import pearson


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target="score", values="numbers")
    return pearson(y_true, y_pred, undefined_value=0.0)
