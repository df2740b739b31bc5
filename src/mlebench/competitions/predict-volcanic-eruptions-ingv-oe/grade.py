import math

import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, column_values, require_columns, rows_of_ids, values_of
from mlebench.metrics import mean_absolute_error


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    require_columns(submission, ["segment_id", "time_to_eruption"])
    # Quirk of v1: rows are not counted, so a segment may be given several times, and each of its rows counts.
    rows = rows_of_ids(submission, answers, id="segment_id")
    y_true = values_of(answers["time_to_eruption"])[rows]
    y_pred = column_values(submission, "time_to_eruption", "numerals")
    return round(finite_error(y_true, y_pred))  # Quirk of v1: scores are whole numbers


def finite_error(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        error = mean_absolute_error(y_true, y_pred)
    if not math.isfinite(error):
        raise InvalidSubmissionError("Column `time_to_eruption` holds numbers too large to take a mean of.")
    return error
