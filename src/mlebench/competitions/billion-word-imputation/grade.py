import pandas as pd

from mlebench.kit import InvalidSubmissionError, align, column_values, require_columns
from mlebench.metrics import mean_levenshtein


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    require_columns(submission, ["id", "sentence"])
    if pd.isna(column_values(submission, "sentence")).any():
        raise InvalidSubmissionError("Column `sentence` has empty values.")
    y_pred, y_true = align(submission, answers, id="id", target="sentence", values="words")
    return mean_levenshtein(y_true, y_pred)
