"""Supplemental logs of test trips, which hold the true track, are secret (L4).

Rows are paired by trip and time (G7), and coordinates are on the globe, so that every score is a number (G19).
"""

import pandas as pd

from mlebench.kit import InvalidSubmissionError, Output, Raw, accepts_paths, values_of
from mlebench.metrics import mean_percentile_distance

from .grade import COORDINATES
from .prepare import TRUTH, prepare_drives

ROW = ["tripId", "UnixTimeMillis"]


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_drives(raw, public, private, secret=[f"**/{TRUTH}", "**/supplemental/**"])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    if not submission["LatitudeDegrees"].between(-90, 90).all():
        raise InvalidSubmissionError("Column `LatitudeDegrees` must hold degrees from -90 to 90.")
    truth = answers.sort_values(ROW)
    true, predicted = (table[COORDINATES].to_numpy(float) for table in (truth, submission.sort_values(ROW)))
    return mean_percentile_distance(true, predicted, values_of(truth["tripId"]))
