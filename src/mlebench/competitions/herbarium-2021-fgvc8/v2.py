"""Categories must be whole numbers (G17)."""

import pandas as pd

from mlebench.kit import align
from mlebench.metrics import macro_f1


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="Id", target="Predicted", values="integers")
    return macro_f1(y_true, y_pred)
