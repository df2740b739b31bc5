"""A predicted attribute that no test picture has counts as wrong (G13)."""

import pandas as pd

from mlebench.kit import align
from mlebench.metrics import micro_f1_of_tags


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target="attribute_ids", values="text")
    return micro_f1_of_tags(y_true, y_pred)
