"""Every row must be complete, whether it counts or not, so that no refusal tells which ones count (L10).

Columns are taken by name, and no id may repeat (G12): both follow from the form of submissions.
"""

import pandas as pd

from mlebench.kit import align
from mlebench.metrics import mean_column_auroc

from .grade import LABELS


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """The mean AUROC of the labels, over the comments that count: those whose labels are not -1."""
    y_pred, y_true = align(submission, answers, id="id", target=LABELS, values="numbers")
    counts = (y_true >= 0).all(axis=1)
    return mean_column_auroc(y_true[counts], y_pred[counts])
