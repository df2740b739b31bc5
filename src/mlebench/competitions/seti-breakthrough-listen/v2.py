"""The withdrawn edition of the data is left out, with all its labels (L7); any finite number ranks recordings (G18)."""

import pandas as pd

from mlebench.kit import align
from mlebench.metrics import auroc

from .prepare import prepare_new_edition as prepare

__all__ = ["grade", "prepare"]


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target="target", values="numbers")
    return auroc(y_true, y_pred)
