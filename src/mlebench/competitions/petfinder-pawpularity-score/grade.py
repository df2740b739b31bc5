import pandas as pd

from mlebench.kit import InvalidSubmissionError, align
from mlebench.metrics import rmse


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="Id", target="Pawpularity", values="numbers")
    if ((y_pred < 1) | (y_pred > 100)).any():
        raise InvalidSubmissionError("Column `Pawpularity` must hold numbers from 1 to 100.")
    return rmse(y_true, y_pred)
