import numpy as np
import pandas as pd

from mlebench.kit import align
from mlebench.metrics import word_jaccard


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target="PredictionString", values="words")
    return np.float64(word_jaccard(y_true, y_pred, both_empty_value=0.0))
