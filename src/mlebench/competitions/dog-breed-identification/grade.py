import pandas as pd

from mlebench.kit import align, require_row_sums
from mlebench.metrics import log_loss


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    breeds = [name for name in answers.columns if name != "id"]
    y_pred, y_true = align(submission, answers, id="id", target=breeds, values="probabilities")
    require_row_sums(y_pred)
    return log_loss(y_true, y_pred)
