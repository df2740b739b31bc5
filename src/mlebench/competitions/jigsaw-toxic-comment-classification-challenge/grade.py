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
    # Quirk of v1: the columns of a submission are used in the order given, whatever their names. Rows that do not
    # count are ignored, even if they hold text or are empty.
    scores = _numbers(submission.drop(columns="id").to_numpy()[theirs])
    if scores is None:
        raise _fault(submission)
    return mean_column_auroc(labels[ours], scores)


def stand_in(public: Path) -> pd.DataFrame:
    """The comments to label, each with one of the labels, and a column that says it is unknown which count."""
    sample = read_frame(public / "sample_submission.csv")
    return with_both_classes(sample, LABELS).assign(**{NOBODY_KNOWS: True})


def _rows_that_count(
    submission: pd.DataFrame, answers: pd.DataFrame, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers in the submission and in the answers, each in the order of its own ids.

    Quirk of v1: an id may replace another, as long as the right number of rows counts. All comments between the two are
    then paired with a neighbour's labels. This is refused where it is unknown which rows count.
    """
    ids, expected = values_of(submission["id"]), values_of(answers["id"])
    found = pd.Index(expected).get_indexer(pd.Index(ids))
    if (found < 0).any():
        raise InvalidSubmissionError("The `id` column has empty ids, or ids that are not in the test set.")
    theirs, ours = (rows[kept[rows]] for rows, kept in ((_order(ids), counts[found]), (_order(expected), counts)))
    repeated = np.bincount(found).max() > 1
    if len(theirs) != len(ours) or (repeated and NOBODY_KNOWS in answers):
        raise _fault(submission)
    return theirs, ours


def _order(ids: np.ndarray) -> np.ndarray:
    # Where ids repeat, it matters that sorted rows keep their order.
    return np.arange(len(ids)) if pd.Index(ids).is_monotonic_increasing else sorting_order(ids, "id")


def _numbers(scores: np.ndarray) -> np.ndarray | None:
    """As floats; None when some are text, empty, infinite or huge."""
    try:
        numbers = scores.astype(float)
    except (OverflowError, TypeError, ValueError):
        return None
    return numbers if np.isfinite(numbers).all() else None


def _fault(submission: pd.DataFrame) -> InvalidSubmissionError:
    """What is wrong anywhere in the submission: naming faults only in rows that count would reveal which these are."""
    no_numbers = _numbers(submission.drop(columns="id").to_numpy()) is None
    faults = ["The label columns have text, or empty, infinite or huge values; they must hold numbers."] * no_numbers
    if submission["id"].duplicated().any() or not faults:
        faults.append("The `id` column has repeated ids; each id of the test set must occur once.")
    return InvalidSubmissionError(" ".join(faults))
