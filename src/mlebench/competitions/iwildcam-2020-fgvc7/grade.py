import pandas as pd

from mlebench.kit import align
from mlebench.metrics import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="Id", target="Category")
    return accuracy(y_true, y_pred)
