import pandas as pd

from mlebench.kit import align
from mlebench.metrics import matthews_correlation


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # Quirk of v1: any whole number is a separate class, not only 0 and 1.
    y_pred, y_true = align(submission, answers, id="contact_id", target="contact", values="integers")
    return matthews_correlation(y_true, y_pred)
