import pandas as pd

from mlebench.kit import column_values, require_columns, rows_of_ids, values_of
from mlebench.metrics import mean_absolute_error


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    require_columns(submission, ["segment_id", "time_to_eruption"])
    # Quirk of v1: rows are not counted, so a segment may be given several times, and each of its rows counts.
    rows = rows_of_ids(submission, answers, id="segment_id")
    y_true = values_of(answers["time_to_eruption"])[rows]
    error = mean_absolute_error(y_true, column_values(submission, "time_to_eruption", "numbers"))
    return round(error)  # scores were published as whole numbers
