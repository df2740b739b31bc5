import pandas as pd

from mlebench.kit import align
from mlebench.metrics import mean_levenshtein


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # Quirk of v1: both sides are compared as text, so that an empty cell is `nan` and a number is its digits.
    y_pred, y_true = align(submission, answers, id="image_id", target="InChI", values="text")
    return mean_levenshtein(y_true, y_pred)
