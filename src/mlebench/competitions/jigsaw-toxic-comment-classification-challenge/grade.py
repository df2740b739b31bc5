from pathlib import Path

import numpy as np
import pandas as pd

from mlebench.kit import (
    InvalidSubmissionError,
    read_frame,
    require_only_columns,
    require_rows,
    sorting_order,
    values_of,
    with_both_classes,
)
from mlebench.metrics import mean_column_auroc

LABELS = ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate")
NOBODY_KNOWS = "nobody knows which rows count"


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """The mean AUROC of the labels, over the comments that count: those whose labels are not all -1."""
    require_only_columns(submission, "id", LABELS, id_first=False)
    require_rows(submission, len(answers))
    labels = answers[list(LABELS)].to_numpy(dtype=float)
    theirs, ours = _rows_that_count(submission, answers, ~(labels.sum(axis=1) < 0))
    # Quirk of v1: the columns of a submission are taken in the order in which they stand, whatever they are called.
    scores = submission.drop(columns="id").to_numpy()
    return mean_column_auroc(labels[ours], _numbers(scores[theirs]))


def stand_in(public: Path) -> pd.DataFrame:
    """The comments to label, each with one of the labels, and a column that says that nobody knows which count."""
    sample = read_frame(public / "sample_submission.csv")
    return with_both_classes(sample, LABELS).assign(**{NOBODY_KNOWS: True})


def _rows_that_count(
    submission: pd.DataFrame, answers: pd.DataFrame, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers in the submission and in the answers, each in the order of its own ids.

    Quirk of v1: an id may stand in another's place, as long as as many rows count as there should. All comments between
    the two then meet the labels of a neighbour. This is refused where nobody knows what counts.
    """
    ids, expected = values_of(submission["id"]), values_of(answers["id"])
    found = pd.Index(expected).get_indexer(pd.Index(ids))
    if (found < 0).any():
        raise InvalidSubmissionError("The `id` column has empty ids, or ids that are not in the test set.")
    theirs, ours = (rows[kept[rows]] for rows, kept in ((_order(ids), counts[found]), (_order(expected), counts)))
    repeated = len(np.unique(found)) < len(found)
    if len(theirs) != len(ours) or (repeated and NOBODY_KNOWS in answers):
        raise InvalidSubmissionError("The `id` column has repeated ids; each id of the test set must occur once.")
    return theirs, ours


def _order(ids: np.ndarray) -> np.ndarray:
    # Where ids repeat it matters that sorted ones stay as they are.
    return np.arange(len(ids)) if pd.Index(ids).is_monotonic_increasing else sorting_order(ids, "id")


def _numbers(scores: np.ndarray) -> np.ndarray:
    # Quirk of v1: what stands in rows that do not count is not looked at, even if it is text or empty.
    try:
        numbers = scores.astype(float)
    except (OverflowError, TypeError, ValueError):
        raise InvalidSubmissionError("The label columns must hold numbers; some hold text or huge numbers.") from None
    if not np.isfinite(numbers).all():
        raise InvalidSubmissionError("The label columns have empty or infinite values.")
    return numbers
