import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, column_values, require_columns, require_rows, unique, values_of
from mlebench.metrics import mean_percentile_distance

COORDINATES = ["LatitudeDegrees", "LongitudeDegrees"]


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    require_columns(submission, ["tripId", "UnixTimeMillis", *COORDINATES])
    require_rows(submission, len(answers))
    trips = pd.Index(unique(values_of(answers["tripId"])))
    true_trips, given_trips = (trips.get_indexer(pd.Index(values_of(side["tripId"]))) for side in (answers, submission))
    if not np.array_equal(np.sort(true_trips), np.sort(given_trips)):
        raise InvalidSubmissionError("Each `tripId` must have as many rows as in sample_submission.csv, and no other.")
    # Quirk of v1: times are ignored. The rows of a trip are paired in the order given.
    ours, theirs = (np.argsort(side, kind="stable") for side in (true_trips, given_trips))
    true = np.column_stack([values_of(answers[name]) for name in COORDINATES])[ours]
    predicted = np.column_stack([column_values(submission, name, "any numbers") for name in COORDINATES])[theirs]
    return mean_percentile_distance(true, predicted, true_trips[ours])
