"""All weeks are predicted and their numbers finite (G3, L10), so that every score is a number (G19)."""

import numpy as np
import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, column_values, is_in, rows_of_ids, values_of
from mlebench.metrics import laplace_log_likelihood

from .grade import last_visits
from .prepare import prepare_patients

LARGEST = 1e300  # confidences above it count as this one: their products with numbers of the metric are still finite


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    answers = prepare_patients(raw, public, private)
    capacity = np.where(np.isnan(answers["FVC"]), 2000, answers["FVC"])  # any number, where nothing was measured
    private.write("gold_submission.csv", answers.select("Patient_Week").assign(FVC=capacity, Confidence=70))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    rows = rows_of_ids(submission, answers, id="Patient_Week")
    predicted, confidence = (column_values(submission, name, "numbers") for name in ("FVC", "Confidence"))
    scored = is_in(rows, last_visits(answers))
    y_true = values_of(answers["FVC"])[rows[scored]]
    return laplace_log_likelihood(y_true, predicted[scored], np.minimum(confidence[scored], LARGEST))
