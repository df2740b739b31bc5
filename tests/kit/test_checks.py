"""Faults of a submission are the agent's to fix, and their messages reveal nothing about the truth."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlebench.core.errors import InvalidSubmissionError
from mlebench.kit import (
    align,
    as_text,
    column_values,
    require_columns,
    require_only_columns,
    require_row_sums,
    require_rows,
    rows_of_ids,
    sorting_order,
    split_guesses,
    split_records,
    words_as_numbers,
)

pytestmark = pytest.mark.bytes

KINDS = ("labels", "integers", "truncated", "numbers", "any numbers", "probabilities", "text", "any")
ANSWERS = pd.DataFrame({"id": ["c", "a", "b"], "y": [1, 0, 2]})


def submission(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"id": ["a", "b", "c"], "y": [0, 2, 1]} | columns)


def fault(check: Callable[[], object]) -> str | None:
    try:
        check()
    except InvalidSubmissionError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("faulty", "message"),
    [
        (pd.DataFrame(), "Submission is missing the following columns: id, y."),
        (submission().drop(columns="y"), "Submission is missing the following columns: y."),
        (submission().head(2), "Submission has 2 rows, 3 are expected."),
        (pd.concat([submission(), submission()]), "Submission has 6 rows, 3 are expected."),
        (
            submission(id=["a", "b", "x"]),
            "The `id` column does not hold the expected ids: "
            "1 expected ids are missing (first: c), 1 ids are unknown (first: x).",
        ),
        (
            submission(id=["a", "b", "b"]),
            "The `id` column does not hold the expected ids: 1 expected ids are missing (first: c).",
        ),
        (
            submission(id=["a", "b", "x" * 50]),
            "The `id` column does not hold the expected ids: "
            f"1 expected ids are missing (first: c), 1 ids are unknown (first: {'x' * 37}...).",
        ),
        (submission(id=["a", 1, "c"]), "Column `id` mixes text and numbers."),
        (submission(y=[0, None, 1]), "Column `y` has empty values."),
        (submission(y=["0", 1.5, "x"]), "Column `y` mixes text and other values."),
    ],
)
def test_a_faults_message_tells_its_author_what_to_do(faulty: pd.DataFrame, message: str) -> None:
    assert fault(lambda: align(faulty, ANSWERS, id="id", target="y")) == message


def test_repeated_ids_are_distinguished_from_unknown_ones() -> None:
    answers = pd.DataFrame({"id": ["a", "a", "b"], "y": [0, 1, 1]})
    faulty = pd.DataFrame({"id": ["a", "b", "b"], "y": [0, 1, 1]})
    assert "repeated or empty" in (fault(lambda: align(faulty, answers, id="id", target="y")) or "")


@pytest.mark.parametrize("values", [[0.5, 1, 2], [np.inf, 1, 2], [-np.inf, 1, 2], [1e300, 1, 2], [2.0**63, 1, 2]])
def test_labels_are_whole_numbers(values: list[float]) -> None:
    assert "must hold labels" in (fault(lambda: column_values(submission(y=values), "y", "labels")) or "")
    assert fault(lambda: column_values(submission(y=values), "y", "integers"))


def test_integers_are_numbers_without_a_fraction() -> None:
    for values in ([0, -1, 2], [3.0, 0.0, 1e6], [True, False, True]):
        assert column_values(submission(y=values), "y", "integers").tolist() == values
    assert "whole numbers" in (fault(lambda: column_values(submission(y=[0.5, 1, 2]), "y", "integers")) or "")
    assert "text" in (fault(lambda: column_values(submission(y=["a", "1", "2"]), "y", "integers")) or "")


@pytest.mark.parametrize(
    ("values", "whole"),
    [
        ([3, -3], [3, -3]),
        ([3.9, -3.9], [3, -3]),
        ([True, False], [1, 0]),
        (["1_000", " 7 "], [1000, 7]),
        ([2**62 + 1, 0], [2**62 + 1, 0]),
    ],
)
def test_truncated_values_are_those_of_pythons_int(values: list[Any], whole: list[int]) -> None:
    column = column_values(submission(y=[*values, 0]), "y", "truncated")
    assert column.dtype == np.int64
    assert column.tolist() == [*whole, 0]


@pytest.mark.parametrize("value", ["abc", "3.9", None, float("inf"), 1e19, 2**63, 10**30, ""])
def test_values_beyond_int_are_not_truncated(value: Any) -> None:
    with pytest.raises(InvalidSubmissionError, match="`y` must hold whole numbers"):
        column_values(submission(y=[value, 0, 0]), "y", "truncated")


@pytest.mark.parametrize("values", [[0.0, 1.0, 2.0], [-1, 5, 7], [True, False, True], ["a", "b", "nan"]])
def test_labels_may_be_text_booleans_or_whole_numbers(values: list[Any]) -> None:
    assert column_values(submission(y=values), "y", "labels").tolist() == values


@pytest.mark.parametrize(("truth", "kind"), [([True, False, True], "booleans or numbers"), (["x", "y", "x"], "text")])
def test_two_classes_fix_the_kind_of_label(truth: list[Any], kind: str) -> None:
    answers = ANSWERS.assign(y=truth)
    other = submission(y=["a", "b", "a"] if kind != "text" else [0, 1, 0])
    assert fault(lambda: align(other, answers, id="id", target="y")) == f"Column `y` must hold {kind}."


def test_with_more_classes_labels_of_another_kind_are_only_wrong() -> None:
    for truth, predictions in (
        ([1, 0, 2], ["a", "b", "c"]),
        ([1, 0, 2], ["a", "b", "a"]),
        ([1, 0, 1], ["a", "b", "c"]),
    ):
        answers = ANSWERS.assign(y=truth)
        y_pred, _ = align(submission(y=predictions), answers, id="id", target="y")
        assert y_pred.tolist() == predictions


@pytest.mark.parametrize("kind", ["numbers", "probabilities"])
@pytest.mark.parametrize("values", [[0, None, 1], [np.inf, 0, 1], ["x", "0", "1"], [0.5, "x", 1], [0, -np.inf, 0]])
def test_numbers_are_finite_and_all_there(kind: Any, values: list[Any]) -> None:
    assert fault(lambda: column_values(submission(y=values), "y", kind))


def test_any_numbers_may_be_empty_or_infinite_but_not_text() -> None:
    values = column_values(submission(y=[None, np.inf, 1]), "y", "any numbers")
    assert np.array_equal(values, [np.nan, np.inf, 1], equal_nan=True)
    assert column_values(submission(y=[None] * 3).astype({"y": float}), "y", "any numbers").dtype == float
    assert "must hold numbers" in (
        fault(lambda: column_values(submission(y=["x", "1", "2"]), "y", "any numbers")) or ""
    )


def test_probabilities_lie_between_0_and_1_inclusive() -> None:
    assert column_values(submission(y=[0, 0.5, 1]), "y", "probabilities").tolist() == [0, 0.5, 1]
    assert column_values(submission(y=[True, False, True]), "y", "probabilities").dtype == float
    for value in (-1e-9, 1 + 1e-9, 2):
        message = fault(lambda value=value: column_values(submission(y=[0, value, 1]), "y", "probabilities"))
        assert message == "Column `y` must hold probabilities between 0 and 1."


def test_text_is_what_python_prints() -> None:
    assert as_text(np.array([1, 2.5, "x", np.nan, True], dtype=object)).tolist() == ["1", "2.5", "x", "nan", "True"]


def test_words_are_unchanged_text_and_an_empty_cell_has_none() -> None:
    truth = pd.DataFrame({"id": ["a", "b", "c"], "y": ["x", None, "z z"]})
    for guesses in (["x y", None, "z"], [None] * 3, [np.nan] * 3):
        predicted, true = align(submission(y=guesses), truth, id="id", target="y", values="words")
        assert predicted.tolist() == [guess if isinstance(guess, str) else "" for guess in guesses]
        assert true.tolist() == ["x", "", "z z"]
    for faulty in ([1, 2, 3], [1.0, None, 2.0], [True, False, True], ["x", 1, None]):
        message = fault(lambda faulty=faulty: column_values(submission(y=faulty), "y", "words"))
        assert message == "Column `y` must hold text; it holds numbers or mixed values."


def test_only_the_named_columns_are_accepted_with_the_id_first() -> None:
    frame = pd.DataFrame({"id": [1], "b": [0], "a": [0]})
    require_only_columns(frame, "id", ["a", "b"])
    for faulty in (frame.assign(c=1), frame.loc[:, ["b", "id", "a"]], frame.loc[:, ["id", "a"]]):
        assert fault(lambda faulty=faulty: require_only_columns(faulty, "id", ["a", "b"]))
    require_only_columns(frame.loc[:, ["b", "id", "a"]], "id", ["a", "b"], id_first=False)
    for faulty in (frame.assign(c=1), frame.loc[:, ["id", "a"]], frame.loc[:, ["a", "b"]]):
        assert fault(lambda faulty=faulty: require_only_columns(faulty, "id", ["a", "b"], id_first=False))
    require_columns(frame, ["a"])
    require_rows(frame, 1)


def test_rows_sum_to_one_within_what_published_scores_allowed() -> None:
    require_row_sums(np.array([[0.5, 0.5], [1.0, 0.0]]))
    require_row_sums(np.array([[0.5, 0.500010]]))
    for wrong in (0.50002, 0.49998, np.nan):
        assert fault(lambda wrong=wrong: require_row_sums(np.array([[0.5, wrong]])))


def test_rows_that_are_to_sum_to_one_when_rounded_have_no_other_tolerance() -> None:
    require_row_sums(np.array([[0.5, 0.5000004], [1.0, 0.0]]), decimals=6)
    for wrong in (0.5000006, 0.4999994, 0.500010, np.nan):
        assert fault(lambda wrong=wrong: require_row_sums(np.array([[0.5, wrong]]), decimals=6))


IDS = st.lists(st.integers(0, 5), max_size=40) | st.lists(st.sampled_from(["a", "b", "B", "é", "10", "9"]), max_size=40)


@given(IDS, st.lists(st.booleans(), min_size=40, max_size=40))
def test_rows_are_ordered_as_pandas_orders_them_ties_and_gaps_included(ids: list[Any], gaps: list[bool]) -> None:
    for values in (ids, [None if gap else id for id, gap in zip(ids, gaps, strict=False)]):
        series = pd.Series(values, dtype=None if values else object)
        if pd.api.types.is_string_dtype(series.dtype):
            series = series.astype(object)
        expected = pd.DataFrame({"id": series}).sort_values("id").index.tolist()
        assert sorting_order(series.to_numpy(), "id").tolist() == expected


TEXTS = st.text(st.sampled_from("aAb0~ \0\x7fé€\U0001f600"), max_size=3) | st.integers(60, 70).map(
    lambda count: "a" * count
)


@given(st.lists(TEXTS, max_size=40, unique=True) | st.lists(TEXTS, max_size=40))
def test_the_quick_order_of_texts_is_that_of_pandas(texts: list[str]) -> None:
    values = np.array([*texts, None], dtype=object)[:-1]
    assert sorting_order(values, "id").tolist() == pd.Series(values, dtype=object).sort_values().index.tolist()


TARGETS = st.sampled_from([[0, 1, 2, 3, 4, 5], [True, False] * 3, list("ababab"), [0.5, 1.0, 0.0, 0.25, 1.0, 0.0]])


@given(st.permutations(range(6)), st.permutations(range(6)), TARGETS)
def test_the_order_of_rows_does_not_matter(ours: list[int], theirs: list[int], truth: list[Any]) -> None:
    answers = pd.DataFrame({"id": [10, 9, 8, 7, 6, 5], "y": truth})
    given_rows, own_rows = answers.iloc[theirs], answers.iloc[ours]
    y_pred, y_true = align(given_rows, own_rows, id="id", target="y", values="any")
    assert y_pred.tolist() == y_true.tolist() == truth[::-1]
    both = align(given_rows.assign(z=1), own_rows.assign(z=2), id="id", target=["y", "z"], values="any")
    assert [part.shape for part in both] == [(6, 2), (6, 2)]
    assert both[0][:, 0].tolist() == truth[::-1]
    assert (both[0][:, 1] == 1).all()
    assert (both[1][:, 1] == 2).all()


def test_ids_that_are_not_compared_only_sort() -> None:
    shifted = submission(id=["x", "y", "z"])
    y_pred, y_true = align(shifted, ANSWERS, id="id", target="y", compare_ids=False)
    assert y_pred.tolist() == y_true.tolist() == [0, 2, 1]


@given(st.lists(st.integers(0, 3), max_size=8), st.permutations(range(4)))
def test_rows_find_the_answers_of_their_ids_and_may_repeat(more: list[int], order: list[int]) -> None:
    answers = pd.DataFrame({"id": [7, 5, 8, 6]})
    rows = [*order, *more]
    assert rows_of_ids(answers.iloc[rows], answers, id="id").tolist() == rows


def test_rows_of_ids_need_every_id_and_no_other() -> None:
    answers = pd.DataFrame({"id": [7, 5]})
    for ids in ([7], [7, 7], [7, 5, 6], [7, 5, None], ["7", "5"], []):
        assert fault(lambda ids=ids: rows_of_ids(pd.DataFrame({"id": ids}), answers, id="id"))


CELL = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, np.inf, -np.inf, np.nan, 1e300, 2**70])
    | st.sampled_from(["", "a", "b", "c", "nan", "1"])
)
COLUMN = st.lists(CELL, min_size=6, max_size=6) | CELL.map(lambda cell: [cell] * 6)
GOOD_IDS = st.just(list("abcdef")) | st.permutations("abcdef") | st.just([1, 2, 3, 4, 5, 6])


@settings(max_examples=4 * settings().max_examples)
@given(
    ids=GOOD_IDS | COLUMN,
    predictions=COLUMN,
    rows=st.integers(0, 6),
    expected=GOOD_IDS,
    truth=TARGETS,
    kind=st.sampled_from(KINDS),
    order=st.permutations(range(6)),
)
def test_any_submission_gets_a_verdict_that_does_not_depend_on_the_truth(
    ids: list[Any],
    predictions: list[Any],
    rows: int,
    expected: list[Any],
    truth: list[Any],
    kind: Any,
    order: list[int],
) -> None:
    frame = pd.DataFrame({"id": ids, "y": predictions}).iloc[: rows or None]
    answers = pd.DataFrame({"id": expected, "y": truth})
    permuted = answers.assign(y=[truth[place] for place in order])
    messages = {
        fault(lambda known=known: align(frame, known, id="id", target="y", values=kind))
        for known in (answers, permuted)
    }
    assert len(messages) == 1


def test_records_in_cells_are_split_into_words() -> None:
    cells = np.array(["a 1 2", " ", "b  3\t4 c 5 6 "], dtype=object)
    numbers, (names, *values) = split_records("y", cells, 3)
    assert numbers.tolist() == [0, 2, 2]
    assert names == ["a", "b", "c"]
    assert [words_as_numbers("y", words).tolist() for words in values] == [[1, 3, 5], [2, 4, 6]]


def test_with_a_separator_records_may_hold_empty_words() -> None:
    numbers, parts = split_records("y", np.array(["1  x", ""], dtype=object), 3, sep=" ")
    assert numbers.tolist() == [0]
    assert parts == [["1"], [""], ["x"]]


@pytest.mark.parametrize(
    ("cell", "message"), [("a 1", "3 values"), (np.nan, "empty"), (1.5, "numbers"), ("a 1 2 b", "4 in all")]
)
def test_incomplete_records_and_non_text_are_refused(cell: Any, message: str) -> None:
    with pytest.raises(InvalidSubmissionError, match=message):
        split_records("y", np.array(["a 1 2", cell], dtype=object), 3)


def test_words_that_are_not_numbers_are_refused() -> None:
    assert words_as_numbers("y", []).tolist() == []
    assert words_as_numbers("y", ["1e3", "-inf"]).tolist() == [1000, -np.inf]
    with pytest.raises(InvalidSubmissionError, match="'abc'"):
        words_as_numbers("y", ["1", "abc"])


def test_guesses_are_different_words_and_not_too_many() -> None:
    assert split_guesses("y", np.array(["a", " b  a ", "1 2 3"], dtype=object), most=3) == [["a"], ["b", "a"], [*"123"]]
    for cell in ("", " ", "a b c d", "a b a"):
        with pytest.raises(InvalidSubmissionError, match=f"`y` must hold 1 to 3 different guesses .* holds '{cell}'"):
            split_guesses("y", np.array(["a", cell], dtype=object), most=3)
