import pandas as pd

from mlebench.kit import align
from mlebench.metrics import mean_column_auroc

# Quirk of v1: 9 of the original's 11 labels. "CVC - Normal" and "Swan Ganz Catheter Present" are not graded.
GRADED = (
    *("ETT - Abnormal", "ETT - Borderline", "ETT - Normal"),
    *("NGT - Abnormal", "NGT - Borderline", "NGT - Incompletely Imaged", "NGT - Normal"),
    *("CVC - Abnormal", "CVC - Borderline"),
)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="StudyInstanceUID", target=GRADED, values="probabilities")
    return mean_column_auroc(y_true, y_pred)
