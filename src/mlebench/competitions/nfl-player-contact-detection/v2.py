"""A contact is 0 or 1, and nothing else (G23)."""

import pandas as pd

from mlebench.kit import InvalidSubmissionError, align
from mlebench.metrics import matthews_correlation


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="contact_id", target="contact", values="integers")
    if not ((y_pred == 0) | (y_pred == 1)).all():
        raise InvalidSubmissionError("Column `contact` must hold 0 or 1 in every row.")
    return matthews_correlation(y_true, y_pred)
