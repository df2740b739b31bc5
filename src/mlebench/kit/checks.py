"""Checks of a submission against the answers' shape.

Every fault of a submission is an `InvalidSubmissionError` that tells its author what to mend. Messages speak of
columns, row counts and ids, which are public; they never depend on the answers' targets.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from mlebench.errors import InvalidSubmissionError
from mlebench.kit.frames import values_of

Values = Literal["labels", "numbers", "probabilities", "text", "any"]


def require_columns(submission: pd.DataFrame, names: Sequence[str]) -> None:
    missing = [name for name in names if name not in submission.columns]
    if missing:
        raise InvalidSubmissionError(f"Submission is missing the following columns: {', '.join(missing)}.")


def require_only_columns(submission: pd.DataFrame, id: str, others: Sequence[str]) -> None:
    """The id column first, then exactly the others, in any order."""
    require_columns(submission, [id, *others])
    if len(submission.columns) != len(others) + 1 or submission.columns[0] != id:
        wanted = ", ".join([id, *others])
        raise InvalidSubmissionError(f"Submission must have exactly these columns, `{id}` first: {wanted}.")


def require_rows(submission: pd.DataFrame, count: int) -> None:
    if len(submission) != count:
        raise InvalidSubmissionError(f"Submission has {len(submission)} rows, {count} are expected.")


def column_values(
    submission: pd.DataFrame, name: str, values: Values = "any", answers: np.ndarray | None = None
) -> np.ndarray:
    """A column of a submission, once its values are of the kind that is asked for."""
    column = values_of(submission[name])
    if values == "labels":
        _check_labels(name, column, answers)
    elif values in ("numbers", "probabilities"):
        column = _numbers(name, column)
        if values == "probabilities" and ((column < 0) | (column > 1)).any():
            raise InvalidSubmissionError(f"Column `{name}` must hold probabilities between 0 and 1.")
    elif values == "text":
        column = as_text(column)
    return column


def align(
    submission: pd.DataFrame,
    answers: pd.DataFrame,
    *,
    id: str,
    target: str | Sequence[str],
    values: Values = "labels",
    compare_ids: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Predictions and truth in one order, after checking columns, row count, ids and values.

    Rows are brought together by sorting both sides by id. With a list of targets both results have a column for each.
    Without `compare_ids` that sorting is all that ids are for: unknown and repeated ones are accepted.
    """
    targets = [target] if isinstance(target, str) else list(target)
    require_columns(submission, [id, *targets])
    require_rows(submission, len(answers))
    ids, expected = values_of(submission[id]), values_of(answers[id])
    theirs, ours = sorting_order(ids, id), sorting_order(expected, id)
    if compare_ids and (ids[theirs] != expected[ours]).any():
        raise InvalidSubmissionError(_id_mismatch(id, ids, expected))
    predicted, truth = [], []
    for name in targets:
        true_values = values_of(answers[name])
        predicted.append(column_values(submission, name, values, true_values)[theirs])
        truth.append((as_text(true_values) if values == "text" else true_values)[ours])
    if isinstance(target, str):
        return predicted[0], truth[0]
    return np.column_stack(predicted), np.column_stack(truth)


def sorting_order(values: np.ndarray, name: str) -> np.ndarray:
    """Row numbers in ascending order of the values, empty ones last.

    Where ids repeat, the order among equals decides a score: it is that of pandas' default sort, which is not stable.
    """
    empty = pd.isna(values)
    filled, rows = values[~empty], np.arange(len(values))
    try:
        return np.concatenate([rows[~empty][np.argsort(filled, kind="quicksort")], rows[empty]])
    except TypeError:
        raise InvalidSubmissionError(f"Column `{name}` mixes text and numbers.") from None


def require_row_sums(probabilities: np.ndarray, tolerance: float = 1e-6) -> None:
    """Each row must sum to one. numpy's relative tolerance (1e-5) is allowed on top, as published scores were."""
    if not np.isclose(probabilities.sum(axis=1), 1, atol=tolerance).all():
        raise InvalidSubmissionError("The probabilities in each row of the submission must sum to one.")


def as_text(values: np.ndarray) -> np.ndarray:
    """Every value as Python prints it; an empty cell is `nan`."""
    return np.array(list(map(str, values.tolist())), dtype=object)


def _numbers(name: str, column: np.ndarray) -> np.ndarray:
    if column.dtype.kind not in "biuf":
        raise InvalidSubmissionError(f"Column `{name}` must hold numbers; it also holds text or mixed values.")
    column = column.astype(float)
    if not np.isfinite(column).all():
        raise InvalidSubmissionError(f"Column `{name}` has empty or infinite values.")
    return column


def _check_labels(name: str, column: np.ndarray, answers: np.ndarray | None) -> None:
    """Labels are text, booleans or whole numbers; a two-class answer also fixes which of these.

    With more classes, labels of another kind are accepted and count as wrong: so the published scores were made.
    """
    if pd.isna(column).any():
        raise InvalidSubmissionError(f"Column `{name}` has empty values.")
    if column.dtype.kind == "f" and not ((column == np.trunc(column)) & (np.abs(column) < 2**63)).all():
        raise InvalidSubmissionError(f"Column `{name}` must hold labels; it holds fractions or infinite numbers.")
    text = column.dtype.kind == "O"
    if text and not all(isinstance(value, str) for value in column):
        raise InvalidSubmissionError(f"Column `{name}` mixes text and other values.")
    if answers is None or text == (answers.dtype.kind == "O"):
        return
    if _classes(column) <= 2 and _classes(answers) <= 2:
        kind = "text" if answers.dtype.kind == "O" else "booleans or numbers"
        raise InvalidSubmissionError(f"Column `{name}` must hold {kind}.")


def _classes(values: np.ndarray) -> int:
    return len(pd.unique(pd.Series(values, dtype=values.dtype)))


def _id_mismatch(name: str, ids: np.ndarray, expected: np.ndarray) -> str:
    got, wanted = pd.Index(ids), pd.Index(expected)
    foreign, absent = got.difference(wanted, sort=False), wanted.difference(got, sort=False)
    found = []
    if len(absent):
        found.append(f"{len(absent)} expected ids are missing (first: {_short(absent[0])})")
    if len(foreign):
        found.append(f"{len(foreign)} ids are unknown (first: {_short(foreign[0])})")
    if not found:
        found.append("some ids are repeated or empty")
    return f"The `{name}` column does not hold the expected ids: {', '.join(found)}."


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
