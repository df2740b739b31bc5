"""Tables print what pandas prints; pandas' own read, take and write is the oracle, pinned figures guard the oracle."""

import csv
import io
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pandas_csv import pandas_prints

from mlebench.core.errors import RawDataError
from mlebench.engine.csv.csv_source import CsvSource
from mlebench.kit import Table, is_in, join_text, one_hot, read_frame, renumber, unique, values_of

pytestmark = pytest.mark.bytes

NA_TOKENS = ["", "NA", "N/A", "None", "null", "NULL", "nan", "NaN", "n/a", "#N/A", "<NA>", "-nan", "-NaN", "1.#IND"]
TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from(list("\",;'\t\r\n é漢🙂")), max_size=8)
WHOLE = st.integers(-(10**6), 10**6).map(str)
GAP = st.sampled_from(NA_TOKENS)
CELLS: dict[str, st.SearchStrategy[str]] = {
    "whole": WHOLE,
    "whole with gaps": WHOLE | GAP,
    "leading zeros": st.from_regex(r"0[0-9]{1,5}", fullmatch=True),
    "beyond 64 bits": st.integers(2**62, 2**65).map(str),
    "floats": st.floats(allow_nan=False).map(repr),
    "17 digits": st.floats(0, 1, exclude_max=True).map("{:.17f}".format),
    "exponents": st.floats(1e-9, 1e-3).map("{:.3e}".format) | st.floats(1e14, 1e18).map("{:.6E}".format),
    "booleans": st.sampled_from(["True", "False"]),
    "booleans with gaps": st.sampled_from(["True", "False", "TRUE", "false", ""]),
    "text": TEXT,
    "tokens": GAP | st.sampled_from(["a", "na", "Nan"]),
    "mixed": WHOLE | TEXT | GAP | st.sampled_from(["True", "1e3", "inf", "-0.0"]),
}


def _csv_file(columns: dict[str, list[str]], newline: str) -> bytes:
    lines = [list(columns), *map(list, zip(*columns.values(), strict=True))]
    return "".join(",".join(map(_quoted, line)) + newline for line in lines).encode("utf-8")


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if set(cell) & set('",\r\n') else cell


@st.composite
def csv_files(draw: st.DrawFn) -> bytes:
    """Files with an id first, so that no line is blank, and then columns full of traps."""
    rows = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4))
    columns = {"id": [str(row) for row in range(rows)]}
    for place, kind in enumerate(kinds):
        columns[f"{kind} {place}"] = draw(st.lists(CELLS[kind], min_size=rows, max_size=rows))
    return _csv_file(columns, draw(st.sampled_from(["\n", "\r\n"])))


def table_of(content: bytes, **options: Any) -> Table:
    return Table.from_source(CsvSource(lambda: io.BytesIO(content), **options))


def printed(table: Table, **style: Any) -> bytes:
    stream = io.BytesIO()
    table.write_csv(stream, **style)
    return stream.getvalue()


def pandas_reads(content: bytes, **options: Any) -> pd.DataFrame:
    exact = {} if pd.__version__ >= "3.1" else {"float_precision": "round_trip"}
    frame = pd.read_csv(io.BytesIO(content), **exact, **options)
    # pandas 2.2 leaves a column with a whole number beyond 64 bits as text; 3 turns it into Python's numbers.
    huge = [name for name in frame if frame[name].dtype == object and type(frame[name].iloc[0]) is int]
    return frame.astype(dict.fromkeys(huge, str))


@settings(max_examples=2 * settings().max_examples)
@given(csv_files(), st.randoms(use_true_random=False))
def test_rows_taken_from_a_file_print_as_pandas_prints_them(content: bytes, random: Random) -> None:
    frame = pandas_reads(content)
    rows = [random.randrange(len(frame)) for _ in range(random.randrange(2 * len(frame)))]
    assert printed(table_of(content)) == pandas_prints(frame)
    assert printed(table_of(content).take(rows)) == pandas_prints(frame.iloc[rows])


@given(csv_files())
def test_nonnumeric_quoting_prints_as_pandas_does(content: bytes) -> None:
    expected = pandas_prints(pandas_reads(content), quoting=csv.QUOTE_NONNUMERIC)
    assert printed(table_of(content), quoting="nonnumeric") == expected


@given(csv_files())
def test_tabs_between_columns_print_as_pandas_does(content: bytes) -> None:
    assert printed(table_of(content), sep="\t") == pandas_prints(pandas_reads(content), sep="\t")


@given(csv_files())
def test_reordered_columns_print_as_pandas_does(content: bytes) -> None:
    frame, table = pandas_reads(content), table_of(content)
    last = table.columns[-1]
    constants = {"flag": False, "half": 0.5, "none": 0, "empty": "", "word": 'a "b"', last: "replaced"}
    ours = table.rename({"id": "key"}).assign(constants, double=table["id"] * 2).select("double", "key", *constants)
    theirs = frame.rename(columns={"id": "key"}).assign(**constants, double=frame["id"] * 2)
    assert printed(ours) == pandas_prints(theirs.loc[:, ["double", "key", *constants]])
    assert printed(table.drop(last)) == pandas_prints(frame.drop(columns=last))
    assert table.columns == list(frame.columns), "a table is not changed by its methods"


@given(csv_files(), st.randoms(use_true_random=False))
def test_chained_selections_equal_one(content: bytes, random: Random) -> None:
    table = table_of(content)
    first = [random.randrange(len(table)) for _ in range(len(table))]
    second = [random.randrange(len(first)) for _ in range(3)]
    tagged = table.take(first).assign(tag=np.arange(len(first)))
    assert printed(tagged.take(second).drop("tag")) == printed(table.take([first[row] for row in second]))
    assert tagged.take(second)["tag"].tolist() == second


@pytest.mark.parametrize("second", [["3", "4"], ["", "4"], ["0.5", "4"], ["x", "4"], ["True", "False"]])
def test_concatenation_prints_as_pandas_does(second: list[str]) -> None:
    files = [_csv_file({"a": cells, "b": ["é", ""]}, "\n") for cells in (["1", "2"], second)]
    expected = pandas_prints(pd.concat(list(map(pandas_reads, files))))
    assert printed(Table.concat(list(map(table_of, files)))) == expected


COLUMNS: list[st.SearchStrategy[np.ndarray]] = [
    st.lists(st.floats(), min_size=7, max_size=7).map(np.array),
    st.lists(st.floats(width=32), min_size=7, max_size=7).map(lambda values: np.array(values, dtype=np.float32)),
    st.lists(st.booleans(), min_size=7, max_size=7).map(np.array),
    st.lists(st.integers(0, 255), min_size=7, max_size=7).map(lambda values: np.array(values, dtype=np.uint8)),
    st.lists(st.none() | TEXT | st.integers() | st.floats() | st.booleans(), min_size=7, max_size=7).map(
        lambda values: np.array([*values, None], dtype=object)[:-1]
    ),
]


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(st.one_of(COLUMNS), min_size=1, max_size=3), st.sampled_from(["%.10f", "%.3g", None]), st.booleans())
def test_values_in_memory_print_as_pandas_prints_them(
    columns: list[np.ndarray], style: str | None, quote: bool
) -> None:
    frame = pd.DataFrame({f"c{place}": pd.Series(values, dtype=values.dtype) for place, values in enumerate(columns)})
    quote = quote and not any(values.dtype == np.float32 for values in columns)  # versions of pandas differ there
    quoting = csv.QUOTE_NONNUMERIC if quote else csv.QUOTE_MINIMAL
    expected = pandas_prints(frame, float_format=style, quoting=quoting)
    table = Table.from_columns({name: frame[name].to_numpy() for name in frame})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mlebench.engine.tables.PRINTED_ROWS", 3)
        assert printed(table, quoting="nonnumeric" if quote else "minimal", float_format=style) == expected


def test_dates_are_refused() -> None:
    with pytest.raises(ValueError, match="day"):
        Table.from_pandas(pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}))


def test_concatenation_requires_the_same_columns() -> None:
    with pytest.raises(ValueError, match="columns"):
        Table.concat([Table.from_columns({"a": [1]}), Table.from_columns({"b": [1]})])


PRINTED_CELLS = [
    *((token, '""') for token in NA_TOKENS if token),
    ("007", "7"),
    ("45", "45"),
    ("1.0", "1.0"),
    ("0.0001", "0.0001"),
    ("0.00001", "1e-05"),
    ("123456789012345680", "123456789012345680"),
    ("1e15", "1000000000000000.0"),
    ("1e16", "1e+16"),
    ("0.1234567890123456789", "0.12345678901234568"),
    ("0.30000000000000004", "0.30000000000000004"),
    ("-0.0", "-0.0"),
    ("inf", "inf"),
    ("true", "True"),
    ('"a ""b"""', '"a ""b"""'),
    ('"a,b"', '"a,b"'),
    ('"a\nb"', '"a\nb"'),
    ("'a'", "'a'"),
    ("é漢🙂", "é漢🙂"),
    ("  x ", "  x "),
]


@pytest.mark.parametrize(("written", "shown"), PRINTED_CELLS)
def test_a_lone_cell_prints_as_published(written: str, shown: str) -> None:
    assert printed(table_of(f"c\n{written}\n".encode())).decode() == f"c\n{shown}\n"


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (["45", ""], ["45.0", ""]),
        (["45", "NA"], ["45.0", ""]),
        (["True", ""], ["True", ""]),
        (["007", "x"], ["007", "x"]),
        (["1", "2.5"], ["1.0", "2.5"]),
        (["None", "0.00001"], ["", "1e-05"]),
    ],
)
def test_neighbours_decide_how_a_cell_prints(cells: list[str], shown: list[str]) -> None:
    content = "id,c\n" + "".join(f"{row},{cell}\n" for row, cell in enumerate(cells))
    expected = "id,c\n" + "".join(f"{row},{cell}\n" for row, cell in enumerate(shown))
    assert printed(table_of(content.encode())).decode() == expected


def test_crlf_becomes_lf_and_line_ends_inside_cells_stay() -> None:
    content = b'id,text\r\n1,"a\r\nb"\r\n2,"c\rd\ne"\r\n'
    assert printed(table_of(content)) == b'id,text\n1,"a\r\nb"\n2,"c\rd\ne"\n'


def test_nonnumeric_quoting_quotes_header_text_and_gaps() -> None:
    content = b"id,before,n\n1,NA,1.5\n2,two,\n"
    assert printed(table_of(content), quoting="nonnumeric") == b'"id","before","n"\n1,"",1.5\n2,"two",""\n'


def test_float_format_affects_only_floats() -> None:
    content = b"i,f,t\n1,0.1,0.1x\n2,,0.2x\n"
    assert printed(table_of(content), float_format="%.10f") == b"i,f,t\n1,0.1000000000,0.1x\n2,,0.2x\n"


def test_options_of_reading_are_honoured() -> None:
    assert printed(table_of(b"id;n\n007;1\n", sep=";", dtype={"id": str})) == b"id,n\n007,1\n"
    assert printed(table_of("n\né\n".encode("latin-1"), encoding="latin-1")) == "n\né\n".encode()


def test_a_single_empty_cell_stays_a_row() -> None:
    assert printed(Table.from_columns({"c": ["", "x"]})) == b'c\n""\nx\n'


def test_a_table_knows_its_columns_before_its_rows() -> None:
    reads = []

    def open_file() -> io.BytesIO:
        reads.append(1)
        return io.BytesIO(b"a,b\n1,2\n")

    table = Table.from_source(CsvSource(open_file))
    assert table.select("b").columns == ["b"]
    assert len(reads) <= 1
    assert table["a"].tolist() == [1]
    assert len(table.take([0, 0])) == 2
    assert len(reads) <= 2, "a table is read at most twice"


@pytest.mark.parametrize("use", [lambda t: t["x"], lambda t: t.drop("x"), lambda t: t.select("x"),
                                 lambda t: t.rename({"x": "y"}), lambda t: t.sort_by("x"),
                                 lambda t: t.group_first("a", "x")])  # fmt: skip
def test_an_unknown_column_is_named_with_the_existing_ones(use: Any) -> None:
    with pytest.raises(RawDataError, match=r"no column 'x'; choose from a, b"):
        use(Table.from_columns({"a": [1], "b": [2]}))


def test_a_column_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="'c' has 3 values for 2 rows"):
        Table.from_columns({"a": [1, 2]}).assign(c=[1, 2, 3])


@given(csv_files())
def test_sorting_is_stable_with_gaps_last(content: bytes) -> None:
    table = table_of(content)
    name = table.columns[-1]
    values = table[name]
    if values.dtype == object and len({type(value) for value in values if not pd.isna(value)}) > 1:
        return
    order = sorted(
        range(len(table)), key=lambda row: (pd.isna(values[row]), 0 if pd.isna(values[row]) else values[row])
    )
    assert table.sort_by(name)["id"].tolist() == order


@given(st.lists(st.tuples(st.sampled_from(["b", "a", "10", None]), st.sampled_from([2, 1, np.nan]))))
def test_the_first_row_of_each_group_is_pandas_first(keys: list[tuple[Any, Any]]) -> None:
    words, numbers = [word for word, _ in keys], [number for _, number in keys]
    table = Table.from_columns({"word": np.array(words, object), "number": np.array(numbers, float)})
    table = table.assign(row=np.arange(len(keys)))
    for names in (["word"], ["number"], ["number", "word"]):
        expected = table.to_pandas().groupby(names)["row"].first().tolist()
        assert table.group_first(*names)["row"].tolist() == expected


@given(
    st.lists(st.tuples(st.sampled_from(["b", "a", "10", None]), st.sampled_from([7, 12, 7.5, np.nan]))),
    st.sampled_from([" ", "", "|"]),
)
def test_the_cells_of_each_group_are_joined_in_the_order_of_rows(rows: list[tuple[Any, Any]], sep: str) -> None:
    keys, numbers = np.array([key for key, _ in rows], object), np.array([number for _, number in rows], float)
    for values in (numbers, np.nan_to_num(numbers).astype(int), numbers.astype(str).astype(object)):
        joined = Table.from_columns({"key": keys, "value": values}).group_join("key", "value", sep)
        expected = {
            key: sep.join(str(value) for other, value in zip(keys, values.tolist(), strict=True) if other == key)
            for key in sorted({key for key in keys if key is not None})
        }
        assert joined.columns == ["key", "value"]
        assert dict(zip(joined["key"].tolist(), joined["value"].tolist(), strict=True)) == expected
        assert joined["key"].tolist() == list(expected)


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1), st.lists(st.integers(0, 2), min_size=1))
def test_selections_by_value_keep_the_order_of_the_file(words: list[str], numbers: list[int]) -> None:
    for values, wanted in ((words, ["a", "c", "z"]), (numbers, [0, 2, 9])):
        table = Table.from_columns({"v": values, "row": range(len(values))})
        assert table.where_in("v", wanted)["row"].tolist() == [i for i, v in enumerate(values) if v in wanted]
        mask = np.array([value in wanted for value in values])
        assert is_in(table["v"], wanted).tolist() == mask.tolist()
        assert table.where(~mask)["row"].tolist() == [i for i, v in enumerate(values) if v not in wanted]
        assert unique(table["v"]).tolist() == list(dict.fromkeys(values))
        first_seen = list(dict.fromkeys(values))
        assert renumber(table["v"], start=5).tolist() == [first_seen.index(value) + 5 for value in values]


def test_one_hot_and_joined_text() -> None:
    classes = one_hot(np.array(["x", "y", "x"], dtype=object), ["y", "x"])
    assert {name: column.tolist() for name, column in classes.items()} == {"y": [0, 1, 0], "x": [1, 0, 1]}
    assert list(classes) == ["y", "x"]
    assert join_text("id_", np.array([1, 2]), "_", np.array(["a", "b"], dtype=object)).tolist() == ["id_1_a", "id_2_b"]


HUGE = "1" * 30


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ([HUGE, "2"], [HUGE, "2"]),
        (["00" + HUGE, "+1"], ["00" + HUGE, "+1"]),
        ([HUGE, "NA"], [HUGE, None]),
        ([HUGE, "NA", "x"], [HUGE, None, "x"]),
        (["x", HUGE, "NA"], ["x", HUGE, None]),
        (["1.5", "1e400"], ["1.5", "1e400"]),
        (["inf", "1e400"], ["inf", "1e400"]),
        (["inf", "2"], [np.inf, 2.0]),
        (["-1e400", "1"], [-np.inf, 1.0]),
        (["1e-400", "1"], [0.0, 1.0]),
        (["9223372036854775808", ""], ["9223372036854775808", ""]),
        (["18446744073709551615", "1"], [2**64 - 1, 1]),
        (["18446744073709551616", ""], ["18446744073709551616", None]),
    ],
)
def test_numbers_beyond_every_type_are_read_as_pandas_2_reads_them(cells: list[str], values: list[Any]) -> None:
    content = "".join(f"{cell},{cell}\n" for cell in ["n", *cells]).encode()
    for frame in (read_frame(io.BytesIO(content)), table_of(content).to_pandas()):
        for name in ("n", "n.1"):
            assert [None if pd.isna(value) else value for value in frame[name]] == values


def test_text_is_made_of_python_objects_under_every_pandas() -> None:
    frame = read_frame(io.BytesIO(b"t,n,b,g\nx,1,True,\n,2,False,y\n"))
    assert frame["t"].dtype == object
    values = values_of(frame["t"])
    assert values.dtype == object
    assert values[0] == "x"
    assert isinstance(values[1], float)
    assert np.isnan(values[1])
    assert [values_of(frame[name]).dtype.kind for name in ("n", "b", "g")] == ["i", "b", "O"]


def test_missing_text_in_memory_reads_as_nan() -> None:
    values = Table.from_columns({"t": ["a", None]})["t"]
    assert np.isnan(values[1])
    frame = pd.DataFrame({"t": pd.array(["a", None], dtype="string")}, index=[7, 9])
    assert printed(Table.from_pandas(frame)) == b't\na\n""\n'
