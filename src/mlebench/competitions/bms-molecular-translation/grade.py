import pandas as pd

from mlebench.kit import align
from mlebench.metrics import mean_levenshtein


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # As text: published scores took an empty cell for `nan` and a number for its digits.
    y_pred, y_true = align(submission, answers, id="image_id", target="InChI", values="text")
    return mean_levenshtein(y_true, y_pred)
