"""The form of submissions under profile v2: what is refused, why, and what a grader gets."""

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench.core.errors import InvalidSubmissionError
from mlebench.kit.submission_form import SubmissionForm

pytestmark = pytest.mark.bytes

NUMBERS = SubmissionForm(("id",), {"x": "numbers"}, b"id,x\n7,0\n10,0\n3,0\n")
WORDS = SubmissionForm(("id",), {"word": "text"}, b"id,word\n007,a\nNA,a\nx y,a\n")
PAIRS = SubmissionForm(("id", "part"), {"x": "integers"}, b"id,part,x\n1,a,0\n1,b,0\n2,a,0\n")


def read(form: SubmissionForm, text: str) -> pd.DataFrame:
    return form.read(io.BytesIO(text.encode()))


def test_rows_come_in_the_order_of_the_sample_with_columns_of_one_type() -> None:
    table = read(NUMBERS, "x,id\n1.5,3\n2,10\n-1e3,7\n")
    assert table.to_dict("list") == {"id": [7, 10, 3], "x": [-1000.0, 2.0, 1.5]}
    assert [kind.kind for kind in table.dtypes] == ["i", "f"]


@pytest.mark.parametrize("id", ["7.0", "7", "07", "7e0"])
def test_ids_that_are_numbers_may_be_spelled_differently(id: str) -> None:
    assert read(NUMBERS, f"id,x\n{id},1\n10,2\n3,3\n")["x"].tolist() == [1, 2, 3]


def test_ids_that_are_text_keep_their_zeros_and_words() -> None:
    table = read(WORDS, "id,word\nx y,nan\nNA,\n007,007\n")
    assert table.to_dict("list") == {"id": ["007", "NA", "x y"], "word": ["007", "", "nan"]}
    with pytest.raises(InvalidSubmissionError, match="'7', in row 1, is unknown"):
        read(WORDS, "id,word\n7,a\nNA,a\nx y,a\n")


def test_a_row_may_be_identified_by_several_columns() -> None:
    assert read(PAIRS, "id,part,x\n2,a,3\n1,b,2\n1,a,1.0\n")["x"].tolist() == [1, 2, 3]
    with pytest.raises(InvalidSubmissionError, match="`id` '1', `part` 'b'"):
        read(PAIRS, "id,part,x\n2,a,3\n1,a,1\n")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("id\n7\n10\n3\n", "missing the following columns: x"),
        ("id,x,y\n7,1,1\n10,1,1\n3,1,1\n", "a column too many, 'y'"),
        ("id,x,x\n7,1,1\n10,1,1\n3,1,1\n", "a column too many, 'x.1'"),
        ("id,x\n7,1\n10,1\n", "1 rows of the sample submission are missing; the first is `id` '3'"),
        ("id,x\n7,1\n10,1\n3,1\n7,2\n", "`id` '7', in row 4, is repeated"),
        ("id,x\n7,1\n10,1\n7.0,2\n", "in row 3, is repeated"),
        ("id,x\n7,1\n10,1\n4,1\n", "`id` '4', in row 3, is unknown"),
        ("id,x\n7,1\n10,1\n,1\n", "`id` '', in row 3, is unknown"),
        ("id,x\n7,1\n10,1\n3,one\n", "`x` must hold a finite number in every row; it holds 'one'"),
        ("id,x\n7,1\n10,\n3,1\n", "it holds ''"),
        ("id,x\n7,1\n10,1e999\n3,1\n", "it holds '1e999'"),
        ("id,x\n7,1\n10,1\n3\n", "it holds ''"),
        ("id,x\n7,1,9\n10,1,9\n3,1,9\n", "rows with more cells than it has columns"),
    ],
)  # fmt: skip
def test_faults_are_named(text: str, fault: str) -> None:
    with pytest.raises(InvalidSubmissionError) as error:
        read(NUMBERS, text)
    assert fault in str(error.value)


def test_kinds_of_values() -> None:
    kinds: dict[str, Any] = {"whole": "integers", "flag": "booleans"}
    form = SubmissionForm(("id",), kinds, b"id,whole,flag\na,0,True\nb,0,True\n")
    table = read(form, "id,whole,flag\na,9007199254740993,false\nb,3.0,1\n")
    assert table["whole"].tolist() == [9007199254740993, 3]
    assert table["flag"].tolist() == [False, True]
    for wrong in ("a,3.9,True", "a,1e300,True", "a,x,True", "a,1,2", "a,1,"):
        with pytest.raises(InvalidSubmissionError, match="must hold"):
            read(form, f"id,whole,flag\n{wrong}\nb,1,1\n")


def test_answers_have_the_types_of_submissions(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("id,word,age\nNA,null,\n007,,3\nx y,1,4\n")
    answers = WORDS.read_answers(path)
    assert answers["id"].tolist() == ["NA", "007", "x y"]
    assert answers["word"].tolist() == ["null", "", "1"]
    assert np.isnan(answers["age"].to_numpy()[0])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30), st.integers(0, 99))
def test_numbers_survive_exactly_whatever_the_order(values: list[float], seed: int) -> None:
    rows = [f"r{number}" for number in range(len(values))]
    form = SubmissionForm(("id",), {"x": "numbers"}, "\n".join(["id,x", *(f"{row},0" for row in rows)]).encode())
    lines = [f"{row},{value!r}" for row, value in zip(rows, values, strict=True)]
    random.Random(seed).shuffle(lines)
    assert read(form, "\n".join(["id,x", *lines]))["x"].tolist() == values
