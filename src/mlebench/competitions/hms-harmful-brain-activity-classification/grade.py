import numpy as np
import pandas as pd

from mlebench.kit import (
    InvalidSubmissionError,
    column_values,
    require_columns,
    require_row_sums,
    require_rows,
    sorting_order,
    values_of,
)
from mlebench.metrics import kl_divergence

ID = "eeg_id"
VOTES = ("seizure_vote", "lpd_vote", "gpd_vote", "lrda_vote", "grda_vote", "other_vote")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    require_columns(submission, [ID, *VOTES])
    require_rows(submission, len(answers))
    # Quirk of v1: ids repeat, and any number of rows for each is accepted.
    if set(submission[ID]) != set(answers[ID]):
        raise InvalidSubmissionError(f"Column `{ID}` must hold the ids of `test.csv`, all of them and no others.")
    predicted = _probabilities(submission)
    votes = answers[list(VOTES)].to_numpy(dtype=float)
    true = votes / votes.sum(axis=1, keepdims=True)
    # Quirk of v1: empty predictions are 0 in the sums and left out of the divergence, and columns written as integers
    # are not clipped.
    whole = np.array([submission[name].dtype.kind in "iu" for name in VOTES])
    rows, their_rows = _order(answers), _order(submission)
    return kl_divergence(true[rows], predicted[their_rows], ignore_empty=True, not_clipped=whole)


def _order(table: pd.DataFrame) -> np.ndarray:
    """Which rows of an id are paired is left to an unstable sort, and affects the score of a file in another order.

    As objects, ids are sorted the same everywhere; the order of equal numbers depends on the processor.
    """
    return sorting_order(values_of(table[ID]).astype(object), ID)


def _probabilities(submission: pd.DataFrame) -> np.ndarray:
    """The predictions, with NaN where they are empty. Quirk of v1: all other columns are part of the sums as well."""
    names = [*VOTES, *(name for name in submission.columns if name not in (ID, *VOTES))]
    if flags := [name for name in names if submission[name].dtype.kind == "b"]:
        raise InvalidSubmissionError(f"Column `{flags[0]}` must hold numbers, not True and False.")
    values = np.column_stack([column_values(submission, name, "any numbers") for name in names])
    filled = np.where(np.isnan(values), 0, values)
    if ((filled < 0) | (filled > 1)).any():
        raise InvalidSubmissionError("Every column but the id must hold probabilities between 0 and 1.")
    require_row_sums(filled, tolerance=1e-8)
    predicted = filled[:, : len(VOTES)]
    if any(round(total, 5) != 1 for total in predicted.sum(axis=1).tolist()):  # Python's rounding is exact
        raise InvalidSubmissionError("The six predictions of each row must sum to one.")
    return values[:, : len(VOTES)]
