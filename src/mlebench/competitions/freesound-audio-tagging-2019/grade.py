import pandas as pd

from mlebench.kit import InvalidSubmissionError, align, require_only_columns
from mlebench.metrics import label_weighted_ranking_precision


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    id, *classes = answers.columns
    require_only_columns(submission, id, classes)
    if list(submission.columns) != [id, *classes]:  # Quirk of v1: no other order is accepted
        raise InvalidSubmissionError("Submission must have its columns in the order of the sample submission.")
    if all(submission[name].dtype.kind == "b" for name in classes):  # Quirk of v1: accepted if any column is numeric
        raise InvalidSubmissionError("Submission must hold numbers; it holds nothing but `True` and `False`.")
    y_pred, y_true = align(submission, answers, id=id, target=classes, values="numbers")
    return label_weighted_ranking_precision(y_true, y_pred)
