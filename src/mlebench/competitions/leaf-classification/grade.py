import pandas as pd

from mlebench.kit import align, require_only_columns, require_row_sums
from mlebench.metrics import log_loss


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    species = [name for name in answers.columns if name != "id"]
    require_only_columns(submission, "id", species, id_first=False)
    y_pred, y_true = align(submission, answers, id="id", target=species, values="probabilities")
    require_row_sums(y_pred)
    return log_loss(y_true, y_pred)
