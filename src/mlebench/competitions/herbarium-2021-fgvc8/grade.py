import pandas as pd

from mlebench.kit import align
from mlebench.metrics import macro_f1


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # Quirk of v1: fractions are cut off, so that 3.9 is category 3.
    y_pred, y_true = align(submission, answers, id="Id", target="Predicted", values="truncated")
    return macro_f1(y_true, y_pred)
