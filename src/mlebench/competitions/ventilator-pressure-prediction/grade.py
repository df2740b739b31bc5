from pathlib import Path

import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, align, read_frame
from mlebench.metrics import mean_absolute_error


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    predictions, truth = align(submission, answers, id="id", target="pressure", values="any")
    # Only inhalation is scored. Quirk of v1: elsewhere a pressure may be missing, or not a number at all.
    scored = answers.sort_values("id")["u_out"].to_numpy() == 0
    return mean_absolute_error(truth[scored], _numbers(predictions[scored]))


def stand_in(public: Path) -> pd.DataFrame:
    """The public sample does not say which rows are scored; the public test table does."""
    return read_frame(public / "test.csv", usecols=["id", "u_out"]).assign(pressure=0.0)


def _numbers(predictions: np.ndarray) -> np.ndarray:
    try:
        numbers = predictions.astype(float)  # text in an unscored row makes the whole column text
    except (OverflowError, ValueError):  # OverflowError for whole numbers of hundreds of digits
        raise InvalidSubmissionError("Column `pressure` must hold numbers where `u_out` is 0.") from None
    if not np.isfinite(numbers).all():
        raise InvalidSubmissionError("Column `pressure` has empty or infinite values where `u_out` is 0.")
    return numbers
