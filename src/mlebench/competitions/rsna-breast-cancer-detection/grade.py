import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, align
from mlebench.metrics import probabilistic_f1


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # Values outside 0 … 1 are clipped by the metric, not rejected.
    y_pred, y_true = align(submission, answers, id="prediction_id", target="cancer", values="any numbers")
    if (y_pred < 0).all():
        raise InvalidSubmissionError("Column `cancer` must hold probabilities; every value is below 0.")
    # Quirk of v1: empty predictions are accepted, and then the score is 0.
    return 0.0 if np.isnan(y_pred).any() else probabilistic_f1(y_true, y_pred)
