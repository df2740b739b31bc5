"""Any finite number ranks clips (G18)."""

import pandas as pd

from mlebench.kit import align
from mlebench.metrics import auroc


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="clip", target="probability", values="numbers")
    return auroc(y_true, y_pred)
