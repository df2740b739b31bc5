import pandas as pd

from mlebench.kit import align
from mlebench.metrics import rmse


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # Published scores were made without a look at the keys: they only put the rows in order.
    y_pred, y_true = align(submission, answers, id="key", target="fare_amount", values="numbers", compare_ids=False)
    return rmse(y_true, y_pred)
