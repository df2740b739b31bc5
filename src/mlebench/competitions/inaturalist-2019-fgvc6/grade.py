import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, align, as_text
from mlebench.metrics import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target="predicted", values="any")
    return 1 - accuracy(y_true, _first_categories(y_pred))


def _first_categories(predicted: np.ndarray) -> np.ndarray:
    """A prediction is a whole number, or a text with several of them: the first one counts."""
    if predicted.dtype.kind in "bi":
        return predicted
    try:
        return np.array([int(text.split()[0]) for text in as_text(predicted)], dtype=np.int64)
    except (IndexError, OverflowError, ValueError):
        raise InvalidSubmissionError(
            "Column `predicted` must hold whole numbers, or several with blanks between them, the best one first."
        ) from None
