"""Kappa measures the distance between scores as numbers, whichever of them occur (G24); it is never NaN (G19)."""

import pandas as pd

from mlebench.kit import align
from mlebench.metrics import quadratic_weighted_kappa


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="essay_id", target="score", values="integers")
    return quadratic_weighted_kappa(y_true, y_pred, by_value=True)
