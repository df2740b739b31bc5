"""Any finite number ranks patients (G18)."""

import pandas as pd

from mlebench.kit import align
from mlebench.metrics import auroc


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="BraTS21ID", target="MGMT_value", values="numbers")
    return auroc(y_true, y_pred)
