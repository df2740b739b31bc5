import pandas as pd

from mlebench.kit import InvalidSubmissionError, align
from mlebench.metrics import mean_angular_error

ANGLES = ["azimuth", "zenith"]


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    if set(submission.columns) != {"event_id", *ANGLES}:  # Quirk of v1: no further column is accepted
        raise InvalidSubmissionError("Submission must have exactly these columns: event_id, azimuth, zenith.")
    for name in ANGLES:
        if submission[name].dtype == bool:
            raise InvalidSubmissionError(f"Column `{name}` must hold numbers, not True and False.")
    predicted, true = align(submission, answers, id="event_id", target=ANGLES, values="numbers")
    return mean_angular_error(true, predicted)
