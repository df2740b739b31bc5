"""Checks of a submission against the answers' shape.

Every fault of a submission is an `InvalidSubmissionError` that tells its author what to fix. Messages mention columns,
row counts and ids, which are public; they never depend on the answers' targets.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from mlebench.core.authors import checked
from mlebench.core.errors import CompetitionError, InvalidSubmissionError
from mlebench.core.suggestions import did_you_mean
from mlebench.engine.frames import values_of

Values = Literal[
    "labels", "integers", "truncated", "numbers", "numerals", "any numbers", "probabilities", "text",
    "words", "any",
]  # fmt: skip


LONGEST_NAME = 64  # characters of an id; longer ones would take too much memory side by side


@checked
def require_columns(submission: pd.DataFrame, names: Sequence[str]) -> None:
    missing = [name for name in names if name not in submission.columns]
    if missing:
        raise InvalidSubmissionError(f"Submission is missing the following columns: {', '.join(missing)}.")


@checked
def require_only_columns(submission: pd.DataFrame, id: str, others: Sequence[str], *, id_first: bool = True) -> None:
    """The id column, first unless that does not matter, and exactly the others, in any order."""
    require_columns(submission, [id, *others])
    if len(submission.columns) != len(others) + 1 or (id_first and submission.columns[0] != id):
        order, wanted = f", `{id}` first" if id_first else "", ", ".join([id, *others])
        raise InvalidSubmissionError(f"Submission must have exactly these columns{order}: {wanted}.")


def _require_answers(answers: pd.DataFrame, names: Sequence[str]) -> None:
    """Refuse answers that lack a column; no submission is to blame for that."""
    for name in names:
        if name not in answers.columns:
            raise CompetitionError(
                f"the answers have no column {name!r}; {did_you_mean(name, map(str, answers.columns))}"
            )


@checked
def require_rows(submission: pd.DataFrame, count: int) -> None:
    if len(submission) != count:
        raise InvalidSubmissionError(f"Submission has {len(submission)} rows, {count} are expected.")


@checked
def column_values(
    submission: pd.DataFrame, name: str, values: Values = "any", answers: np.ndarray | None = None
) -> np.ndarray:
    """A column of a submission, after checking that its values are of the requested kind."""
    column = values_of(submission[name])
    if values == "labels":
        _check_labels(name, column, answers)
    elif values == "integers":
        if column.dtype.kind not in "iu" and not _are_whole(column := _numbers(name, column)):
            raise InvalidSubmissionError(
                f"Column `{name}` must hold whole numbers; it holds fractions or huge numbers."
            )
    elif values == "truncated":  # numbers without their fractions: 3.9 is 3
        column = _truncated(name, column)
    elif values == "text":
        column = as_text(column)
    elif values == "words":
        column = as_words(column)
        if not all(isinstance(value, str) for value in column):
            raise InvalidSubmissionError(f"Column `{name}` must hold text; it holds numbers or mixed values.")
    elif values != "any":
        # Numerals are also text that says a number; `any` ones may be empty or infinite.
        column = _numbers(name, column, finite=not values.startswith("any"), spelled=values.endswith("numerals"))
        if values == "probabilities" and ((column < 0) | (column > 1)).any():
            raise InvalidSubmissionError(f"Column `{name}` must hold probabilities between 0 and 1.")
    return column


@checked
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

    Rows are paired by sorting both sides by id. With a list of targets both results have a column for each. Without
    `compare_ids` ids are used only for sorting: unknown and repeated ones are accepted.
    """
    targets = [target] if isinstance(target, str) else list(target)
    _require_answers(answers, [id, *targets])
    require_columns(submission, [id, *targets])
    require_rows(submission, len(answers))
    ids, expected = values_of(submission[id]), values_of(answers[id])
    theirs = sorting_order(ids, id)
    in_our_order = ids.dtype == expected.dtype and np.array_equal(ids, expected)  # sorting millions of texts is slow
    ours = theirs if in_our_order else sorting_order(expected, id)
    if compare_ids and (ids[theirs] != expected[ours]).any():
        raise InvalidSubmissionError(_id_mismatch(id, ids, expected))
    predicted, truth = [], []
    for name in targets:
        true_values = values_of(answers[name])
        predicted.append(column_values(submission, name, values, true_values)[theirs])
        if values in ("text", "words"):
            true_values = as_text(true_values) if values == "text" else as_words(true_values)
        truth.append(true_values[ours])
    if isinstance(target, str):
        return predicted[0], truth[0]
    return np.column_stack(predicted), np.column_stack(truth)


@checked
def rows_of_ids(submission: pd.DataFrame, answers: pd.DataFrame, *, id: str) -> np.ndarray:
    """For each row of a submission, the row of the answers with its id. Every id must occur, and may do so repeatedly.

    For graders that join a submission to the answers without counting rows: a row given twice weighs double.
    """
    _require_answers(answers, [id])
    require_columns(submission, [id])
    ids, expected = values_of(submission[id]), values_of(answers[id])
    rows = pd.Index(expected).get_indexer(pd.Index(ids))
    if (rows < 0).any() or not np.bincount(rows, minlength=len(expected)).all():
        raise InvalidSubmissionError(_id_mismatch(id, ids, expected))
    return rows


def sorting_order(values: np.ndarray, name: str) -> np.ndarray:
    """Row numbers in ascending order of the values, empty ones last.

    Where ids repeat, the order among equals affects the score: it is that of pandas' default sort, which is unstable.
    """
    if (quick := _order_of_names(values)) is not None:
        return quick
    empty = pd.isna(values)
    filled, rows = values[~empty], np.arange(len(values))
    try:
        return np.concatenate([rows[~empty][np.argsort(filled, kind="quicksort")], rows[empty]])
    except TypeError:
        raise InvalidSubmissionError(f"Column `{name}` mixes text and numbers.") from None


def _order_of_names(values: np.ndarray) -> np.ndarray | None:
    """Match ids several times as fast, for short ASCII texts that are all different; None for anything else."""
    if values.dtype != object or pd.api.types.infer_dtype(values, skipna=False) != "string":
        return None
    if max(map(len, values)) > LONGEST_NAME:
        return None
    try:
        names = values.astype("S")  # bytes sort as the text does
    except UnicodeEncodeError:
        return None
    order = np.argsort(names, kind="stable")
    names = names[order]
    return None if (names[1:] == names[:-1]).any() else order


@checked
def require_row_sums(probabilities: np.ndarray, tolerance: float = 1e-6, *, decimals: int | None = None) -> None:
    """Each row must sum to one. numpy's relative tolerance (1e-5) is allowed on top, as published scores were.

    With `decimals` there is no tolerance: the sum, rounded to that many decimals, must be one.
    """
    sums = probabilities.sum(axis=1)
    right = np.isclose(sums, 1, atol=tolerance) if decimals is None else sums.round(decimals) == 1
    if not right.all():
        raise InvalidSubmissionError("The probabilities in each row of the submission must sum to one.")


@checked
def split_records(
    name: str, cells: np.ndarray, parts: int, *, sep: str | None = None
) -> tuple[np.ndarray, list[list[str]]]:
    """Split text cells that each hold any number of records, where every record has the same number of words.

    Returns the cell's number for every record, and for each part of a record the words of all records. Words are
    separated by `sep`, or by any white space.
    """
    numbers, words = [], []
    for number, cell in enumerate(cells.tolist()):
        if not isinstance(cell, str):
            raise InvalidSubmissionError(f"Column `{name}` must hold text in every row; it has numbers or empty cells.")
        values = cell.split(sep) if cell.strip() else []
        if len(values) % parts:
            raise InvalidSubmissionError(
                f"Column `{name}` must hold {parts} values for each object; {_short(cell)!r} has {len(values)} in all."
            )
        numbers += [number] * (len(values) // parts)
        words += values
    return np.array(numbers, dtype=int), [words[part::parts] for part in range(parts)]


@checked
def split_guesses(name: str, cells: np.ndarray, *, most: int) -> list[list[str]]:
    """The words of each text cell: at least one, at most so many, and no word twice."""
    guesses = [cell.split() for cell in cells.tolist()]
    for cell, words in zip(cells.tolist(), guesses, strict=True):
        if not 0 < len(words) <= most or len({*words}) < len(words):
            raise InvalidSubmissionError(
                f"Column `{name}` must hold 1 to {most} different guesses in every row; it holds {_short(cell)!r}."
            )
    return guesses


def words_as_numbers(name: str, words: Sequence[str]) -> np.ndarray:
    """Words of a column as numbers. Anything that Python reads counts: `1e3`, `1_000`, `nan`."""
    try:
        return np.array(list(map(float, words)))
    except ValueError as error:
        raise InvalidSubmissionError(f"Column `{name}` holds something that is not a number: {error}.") from None


def as_text(values: np.ndarray) -> np.ndarray:
    """Every value as Python prints it; an empty cell is `nan`."""
    return np.array(list(map(str, values.tolist())), dtype=object)


def as_words(values: np.ndarray) -> np.ndarray:
    """Every value unchanged; an empty cell becomes a text without words."""
    return np.where(pd.isna(values), "", values.astype(object))


def _numbers(name: str, column: np.ndarray, *, finite: bool = True, spelled: bool = False) -> np.ndarray:
    """A column as floats. With `spelled` cells that pandas leaves as text count too, if Python reads them (`1_000`)."""
    try:
        if column.dtype.kind not in ("biufO" if spelled else "biuf"):
            raise ValueError
        column = column.astype(float)
    except (TypeError, ValueError):
        raise InvalidSubmissionError(
            f"Column `{name}` must hold numbers; it also holds text or mixed values."
        ) from None
    if finite and not np.isfinite(column).all():
        raise InvalidSubmissionError(f"Column `{name}` has empty or infinite values.")
    return column


def _truncated(name: str, column: np.ndarray) -> np.ndarray:
    """What Python's `int` makes of each value; it also takes text that pandas does not read as a number (`1_000`)."""
    try:
        return np.array(list(map(int, column.tolist())), dtype=np.int64)
    except (OverflowError, TypeError, ValueError):
        raise InvalidSubmissionError(
            f"Column `{name}` must hold whole numbers; it holds empty, infinite or huge values or text."
        ) from None


def _check_labels(name: str, column: np.ndarray, answers: np.ndarray | None) -> None:
    """Labels are text, booleans or whole numbers; a two-class answer also fixes which of these.

    With more classes, labels of another kind are accepted and count as wrong, as in the published scores.
    """
    if pd.isna(column).any():
        raise InvalidSubmissionError(f"Column `{name}` has empty values.")
    if column.dtype.kind == "f" and not _are_whole(column):
        raise InvalidSubmissionError(f"Column `{name}` must hold labels; it holds fractions or infinite numbers.")
    text = column.dtype.kind == "O"
    if text and not all(isinstance(value, str) for value in column):
        raise InvalidSubmissionError(f"Column `{name}` mixes text and other values.")
    if answers is None or text == (answers.dtype.kind == "O"):
        return
    if _classes(column) <= 2 and _classes(answers) <= 2:
        kind = "text" if answers.dtype.kind == "O" else "booleans or numbers"
        raise InvalidSubmissionError(f"Column `{name}` must hold {kind}.")


def _are_whole(column: np.ndarray) -> bool:
    return bool(((column == np.trunc(column)) & (np.abs(column) < 2**63)).all())


def _classes(values: np.ndarray) -> int:
    return len(pd.unique(pd.Series(values, dtype=values.dtype)))


def _id_mismatch(name: str, ids: np.ndarray, expected: np.ndarray) -> str:
    got, wanted = pd.Index(ids), pd.Index(expected)
    foreign, absent = got.difference(wanted, sort=False), wanted.difference(got, sort=False)
    mismatches = []
    if len(absent):
        mismatches.append(f"{len(absent)} expected ids are missing (first: {_short(absent[0])})")
    if len(foreign):
        mismatches.append(f"{len(foreign)} ids are unknown (first: {_short(foreign[0])})")
    if not mismatches:
        mismatches.append("some ids are repeated or empty")
    return f"The `{name}` column does not hold the expected ids: {', '.join(mismatches)}."


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
