import pandas as pd

from mlebench.kit import align
from mlebench.metrics import auroc


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # The key is free text and some comments repeat: which prediction meets which label is then up to the sort.
    y_pred, y_true = align(submission, answers, id="Comment", target="Insult", values="probabilities")
    return auroc(y_true, y_pred)
