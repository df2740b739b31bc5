import pandas as pd

from mlebench.kit import align
from mlebench.metrics import mean_column_auroc


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # Any finite number is a score here, not only those from 0 to 1.
    y_pred, y_true = align(submission, answers, id="id", target=["EC1", "EC2"], values="numerals")
    return mean_column_auroc(y_true, y_pred)
