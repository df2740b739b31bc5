import pandas as pd

from mlebench.kit import align, require_row_sums
from mlebench.metrics import log_loss

OUTCOMES = ["winner_model_a", "winner_model_b", "winner_tie"]


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target=OUTCOMES, values="probabilities")
    require_row_sums(y_pred, decimals=6)
    return log_loss(y_true, y_pred)
