import pandas as pd

from mlebench.kit import align
from mlebench.metrics import rmse


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="fish_id", target="weight_g", values="numbers")
    return rmse(y_true, y_pred)
