import pandas as pd

from mlebench.kit import align, require_only_columns, require_row_sums
from mlebench.metrics import log_loss

AUTHORS = ["EAP", "HPL", "MWS"]


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # Quirk of v1: all columns after the first are summed, so no others are allowed.
    require_only_columns(submission, "id", AUTHORS)
    y_pred, y_true = align(submission, answers, id="id", target=AUTHORS, values="probabilities")
    require_row_sums(y_pred)
    return log_loss(y_true, y_pred)
