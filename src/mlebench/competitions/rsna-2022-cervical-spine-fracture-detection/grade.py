import numpy as np
import pandas as pd

from mlebench.kit import align
from mlebench.metrics import weighted_multilabel_log_loss

# Sorted by row id, the rows of a study are together: C1 to C7, then the patient as a whole.
WEIGHTS = np.array([1, 1, 1, 1, 1, 1, 1, 7])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="row_id", target="fractured", values="probabilities")
    by_study = [labels.reshape(-1, len(WEIGHTS)) for labels in (y_true, y_pred)]
    return weighted_multilabel_log_loss(*by_study, weights=WEIGHTS, positive_factor=2)
