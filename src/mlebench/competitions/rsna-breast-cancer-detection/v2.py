"""Every breast needs a prediction (G19); those below 0 count as 0, even if all of them are."""

import pandas as pd

from mlebench.kit import align
from mlebench.metrics import probabilistic_f1


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="prediction_id", target="cancer", values="numbers")
    return probabilistic_f1(y_true, y_pred)
