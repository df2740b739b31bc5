"""Columns are counted before a parser sees them: for millions, pandas takes minutes and gigabytes."""

import io
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench.core.errors import InvalidSubmissionError
from mlebench.grade import grade_csv, validate_format, validate_submission
from mlebench.integrity.failures.submission_values import read_rows
from mlebench.integrity.rules.predictions import read_predictions
from mlebench.registry import Competition
from mlebench.validate import submission_table
from mlebench.validate.submission_table import ColumnCounter, read_table

REASON = "Submission has a row with more than 10000 columns."
COMMAS = b"," * 600_000
WIDE = {
    "header": COMMAS + b"\n1\n",
    "first row, which makes index columns": b"a,b\n" + COMMAS + b"\n",
    "last row": b"a,b\n" + b"1,2\n" * 1000 + COMMAS,
    "line ends inside quotes": (b"," * 9000 + b'"\n"') * 60,
    "quotes in the middle of a field": b'x"' + COMMAS + b'"\n',
    "after a quoted field": b'"a,""b"' + COMMAS,
    "after a field of half a megabyte": b'"' + b'x,""' * 150_000 + b'"' + COMMAS,
    "old line ends": b"a,b\r" + COMMAS + b"\r",
}


@pytest.fixture(params=WIDE.values(), ids=[*WIDE])
def wide(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "submission.csv"
    path.write_bytes(request.param)
    return path


def test_a_row_of_commas_is_invalid_and_no_parser_sees_it(
    wide: Path, titanic: Competition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parser(*_: object, **__: object) -> None:
        pytest.fail("the parser saw it")

    monkeypatch.setattr(pd, "read_csv", parser)
    monkeypatch.setattr("csv.reader", parser)
    monkeypatch.setattr("mlebench.grade.in_process.read_leaderboard", lambda _: [1.0, 0.5])
    report = grade_csv(wide, titanic)
    assert (report.status, report.reason) == ("invalid", REASON)
    assert report.submission_sha256
    assert validate_format(wide, titanic) == (False, f"Submission invalid! {REASON}")
    assert validate_submission(wide, titanic) == (False, f"Submission invalid! {REASON}")
    assert read_rows(wide) is None
    with wide.open("rb") as file:
        assert read_predictions(file) is None


def test_a_submission_with_thousands_of_further_columns_keeps_its_score(titanic: Competition, tmp_path: Path) -> None:
    header, *rows = titanic.sample_submission.read_text().splitlines()
    more = "," + ",".join(f"c{number}" for number in range(9_998))
    path = tmp_path / "submission.csv"
    path.write_text("\n".join([header + more, *(row + more for row in rows[:2]), *rows[2:]]))
    assert grade_csv(path, titanic).score == grade_csv(titanic.sample_submission, titanic).score
    path.write_text("\n".join([header + more + ",", *rows]))
    assert grade_csv(path, titanic).reason == REASON


@pytest.mark.parametrize("before", [b"", b"\n \n\r\n", b'"a"\n'])
def test_rows_that_a_parser_would_fill_up_with_thousands_of_cells_are_invalid(before: bytes) -> None:
    header = before + b"," * 9_000 + b"\n"
    assert read_table(io.BytesIO(header + b"1\n" * 10)).size <= 110_000
    with pytest.raises(InvalidSubmissionError, match=r"far fewer cells than it has columns\.$"):
        read_table(io.BytesIO(header + b"1\n" * 300_000))


def test_short_rows_of_a_table_as_wide_as_any_sample_are_read() -> None:
    table = read_table(io.BytesIO(b",".join(b"c%d" % number for number in range(128)) + b"\n" + b"1\n" * 10_000))
    assert table.shape == (10_000, 128)


def test_commas_inside_quotes_are_no_columns(titanic: Competition, tmp_path: Path) -> None:
    header, *rows = titanic.sample_submission.read_text().splitlines()
    text = '"' + '""<p>1,2\n3,4</p>""' * 100_000 + '"'
    path = tmp_path / "submission.csv"
    path.write_text("\n".join([f"{header},Body", f"{rows[0]},{text}", *(f"{row},x" for row in rows[1:])]))
    assert grade_csv(path, titanic).status == "graded"


def _widest(data: bytes) -> int:
    """The most fields in a row, byte by byte, as pandas' tokenizer has them."""
    state, fields, widest = "begins", 1, 1
    for byte in (bytes([number]) for number in data):
        if state != "quoted" and byte in b"\r\n":
            widest, fields, state = max(widest, fields), 1, "begins"
        elif state == "quoted":
            state = "quote" if byte == b'"' else "quoted"
        elif byte == b",":
            fields, state = fields + 1, "begins"
        elif byte == b'"' and state in ("begins", "quote"):
            state = "quoted"
        else:
            state = "inside"
    return max(widest, fields)


@given(data=st.lists(st.sampled_from([*b',,"\n\rx'])).map(bytes), block=st.integers(1, 9), most=st.integers(3, 7))
def test_columns_are_counted_exactly_wherever_blocks_end(data: bytes, block: int, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(submission_table, "MOST_COLUMNS", most)
        patch.setattr(submission_table, "_STEP", 2)
        patch.setattr(submission_table, "MOST_CELLS", 1000)
        counter = ColumnCounter()
        try:
            for start in range(0, len(data), block):
                counter.add(data[start : start + block])
        except InvalidSubmissionError:
            assert _widest(data) > most
        else:
            assert _widest(data) <= most


def test_the_parser_counts_fields_as_we_do() -> None:
    for row in (b'a,"b,c",d', b'a"b,c"d,e', b'"a""b,"c,d', b'"a" "b,c"', b'"a\nb",c', b'"",""""'):
        assert len(pd.read_csv(io.BytesIO(row), header=None).columns) == _widest(row), row


def test_a_parser_out_of_memory_is_no_fault_of_the_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    def parser(*_: object, **__: object) -> None:
        raise pd.errors.ParserError("Error tokenizing data. C error: out of memory")

    monkeypatch.setattr(pd, "read_csv", parser)
    with pytest.raises(MemoryError):
        read_table(io.BytesIO(b"a,b\n1,2\n"))
