import pandas as pd

from mlebench.kit import align
from mlebench.metrics import weighted_auroc


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="Id", target="Label", values="numerals")
    return weighted_auroc(y_true, y_pred, edges=(0, 0.4, 1), weights=(2, 1))
