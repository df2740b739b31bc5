from pathlib import Path

import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, column_values, is_in, read_frame, require_columns, values_of
from mlebench.metrics import laplace_log_likelihood

LAST_VISITS = 3  # of each patient are scored


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    require_columns(submission, ["Patient_Week", "FVC", "Confidence"])
    rows = pd.Index(values_of(answers["Patient_Week"])).get_indexer(pd.Index(values_of(submission["Patient_Week"])))
    if (rows < 0).any():
        raise InvalidSubmissionError("Column `Patient_Week` holds values that sample_submission.csv does not have.")
    predicted = column_values(submission, "FVC", "any numbers")
    confidence = column_values(submission, "Confidence", "any numbers")
    confidence = np.where(np.isnan(confidence), 0, confidence)

    # Quirk of v1: weeks that a submission leaves out are not scored, and a week may repeat if no other is scored.
    scored = is_in(rows, last_visits(answers))
    if np.count_nonzero(scored) > len(np.unique(rows[scored])) > 1:
        raise InvalidSubmissionError("A value of `Patient_Week` is repeated.")
    y_true = values_of(answers["FVC"])[rows[scored]]
    return laplace_log_likelihood(y_true, predicted[scored], confidence[scored])


def stand_in(public: Path) -> pd.DataFrame:
    """Each row is a separate patient, so all count: which visits are the last is secret."""
    sample = read_frame(public / "sample_submission.csv")
    return sample.assign(Patient=sample["Patient_Week"], Weeks=0)


def last_visits(answers: pd.DataFrame) -> np.ndarray:
    """Row numbers; weeks without a visit have no FVC."""
    visits = np.flatnonzero(~np.isnan(values_of(answers["FVC"])))
    visits = visits[np.argsort(values_of(answers["Weeks"])[visits], kind="stable")]
    patients = pd.Series(values_of(answers["Patient"])[visits])
    return visits[patients.groupby(patients).cumcount(ascending=False) < LAST_VISITS]
