import pandas as pd

from mlebench.kit import align
from mlebench.metrics import auroc


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # The key is free text and some comments repeat: then the sort decides which prediction is paired with which label.
    y_pred, y_true = align(submission, answers, id="Comment", target="Insult", values="probabilities")
    return auroc(y_true, y_pred)
