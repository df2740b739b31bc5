import pandas as pd

from mlebench.kit import align, require_only_columns
from mlebench.metrics import mean_column_auroc

CLASSES = ("healthy", "multiple_diseases", "rust", "scab")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    require_only_columns(submission, "image_id", CLASSES, id_first=False)
    # Rows need not sum to one, and any finite number is a score, not only those from 0 to 1.
    y_pred, y_true = align(submission, answers, id="image_id", target=CLASSES, values="numerals")
    return mean_column_auroc(y_true, y_pred)
