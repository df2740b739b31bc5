"""Large files go block by block; whatever they hold, the bytes are those that pandas writes."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.pandas_csv import pandas_prints

from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.engine.csv import blocks, csv_source, scan
from mlebench.engine.csv.csv_source import CsvSource
from mlebench.engine.csv.one_pass import RowDestination, write_in_one_pass
from mlebench.engine.frames import NA_TOKENS, read_frame
from mlebench.kit import Table, renumber, split_groups, split_rows
from mlebench.registry import Registry

pytestmark = pytest.mark.bytes

NA_WORDS = ["", "NA", "N/A", "nan", "NaN", "null", "None", "#N/A", "<NA>", "-1.#IND", "n/a", "NULL", "-nan"]
INTS = ["0", "1", "-3", "42", "007", "+5", "-17", "123456789012345678", "9007199254740993", "1234567890123456789"]
FLOATS = ["0.5", "-0.0", "1.0", "1.50", "3.", ".25", "-.5", "1e-05", "0.00001", "0.0001", "1e16", "1E5", "12345678.9"]
LONG = ["0.1234567890123456", "-73.98743200000001", "2.718281828459045", "123456789.123456789", "0.30000000000000004"]
BOOLS = ["True", "False", "true", "FALSE", "tRUe"]
WORDS = [
    "x",
    "Zoë",
    "a b",
    " padded ",
    "2009-06-15 17:26:21 UTC",
    "1-2",
    "0x10",
    "1_000",
    "12abc",
    "e5",
    "--1",
    "東京",
    "-",
]
NEEDS_QUOTES = ["a,b", 'say "hi"', "two\nlines", "if:\n  x\n\ty", '"', ",", "\n", "tail\r\n"]
ODD = ["-0", "inf", "-Infinity", "NAN", " 1", "1 ", "\v1", "1e400", "99999999999999999999", "12345678901234567890x"]
COLUMNS = {
    "ints": INTS[:8],
    "ints with gaps": INTS[:8] + NA_WORDS,
    "floats": FLOATS,
    "mixed numbers": INTS[:8] + FLOATS + LONG + NA_WORDS,
    "booleans": BOOLS,
    "booleans with gaps": BOOLS + NA_WORDS,
    "words": WORDS,
    "words with gaps": WORDS + NA_WORDS,
    "quoted words": WORDS + NEEDS_QUOTES,
    "nothing": NA_WORDS,
    "anything": WORDS + INTS + FLOATS + BOOLS + NA_WORDS + NEEDS_QUOTES + ODD,
    "odd numbers": INTS + ODD,
    "large": INTS,
}


# The engine was built for tables like theirs: if it leaves them to pandas, that must be noticed.
STREAMED = {
    "facebook-recruiting-iii-keyword-extraction",
    "new-york-city-taxi-fare-prediction",
    "spaceship-titanic",
    "tabular-playground-series-dec-2021",
}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_source, "STREAM_BYTES", 0)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 200)
    monkeypatch.setattr("mlebench.engine.row_order.BUCKET_BYTES", 150)


@pytest.fixture(params=["plain", "dictionaries"])
def _repeating(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns with repeated texts are read as dictionaries, from some size on."""
    if request.param == "dictionaries":
        monkeypatch.setattr(scan, "repeat_themselves", len)


@st.composite
def csv_files(draw: st.DrawFn, sep: str = ",") -> bytes:
    kinds = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=5))
    rows = draw(st.integers(0, 40))
    columns = [draw(st.lists(st.sampled_from(COLUMNS[kind]), min_size=rows, max_size=rows)) for kind in kinds]
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    always = draw(st.booleans())
    lines = [sep.join(f"c{number}" for number in range(len(kinds)))]
    lines += [sep.join(_cell(cell, always, sep) for cell in row) for row in zip(*columns, strict=True)]
    end = draw(st.sampled_from([newline, newline, ""]))
    return (newline.join(lines) + end).encode("utf-8")


def _cell(cell: str, always: bool, sep: str) -> str:
    quote = '"' in cell or sep in cell or "\n" in cell or "\r" in cell or (always and not cell.isdigit())
    return '"' + cell.replace('"', '""') + '"' if quote else cell


def _source(content: bytes, **options: Any) -> CsvSource:
    return CsvSource(lambda: io.BytesIO(content), size=len(content), **options)


def _streamed(table: Table, scratch: Path, *, nonnumeric: bool = False, style: str | None = None) -> bytes | None:
    """What streaming writes, or None if it leaves the file to pandas."""
    source = table.source
    assert isinstance(source, CsvSource)
    if source.survey is None:
        return None
    stream = io.BytesIO()
    write_in_one_pass(
        source.open, source.survey, source.sep, [RowDestination(table, stream, nonnumeric, style)], scratch
    )
    return stream.getvalue()


def _by_pandas(table: Table, *, nonnumeric: bool = False, style: str | None = None) -> bytes:
    quoting = csv.QUOTE_NONNUMERIC if nonnumeric else csv.QUOTE_MINIMAL
    return pandas_prints(table.to_pandas(), quoting=quoting, float_format=style)


def _plain(content: bytes, **options: Any) -> Table:
    """The same file, read by pandas whole."""
    return Table.from_pandas(read_frame(io.BytesIO(content), **options))


STYLES: list[dict[str, Any]] = [
    {"nonnumeric": True},
    {"style": "%.10g"},
    {"style": "%.3f"},
    {"nonnumeric": True, "style": "%.3f"},
]
VALUES: list[list] = [
    [0.25, np.nan],
    ["x", None, "", "c\rd"],
    [1, "a", True, None, 2.5, "q,q"],
    [True, False],
    [1e-7, 1e20],
]


@settings(max_examples=4 * settings().max_examples)
@given(csv_files(), st.integers(0, 9), st.sampled_from([*STYLES, {}]), st.integers(0, 8))
@example(b"c0,c1\n1,\n2,x\n", 1, {}, 6)  # one column: an empty cell is an empty line, unless it is quoted
@example(b"c0,c1\n0.5,1\n" + b"0.5,1\n" * 33 + b"x,1\n" + b"0.5,1\n" * 40 + b"NA,1\n" + b"0.5,1\n" * 40, 0, {}, 0)
@example(b"c0,c1\n1,2\n", 0, {"nonnumeric": True}, 8)
def test_any_table_is_written_as_pandas_writes_it(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, seed: int, style: dict[str, Any], how: int
) -> None:
    scratch = tmp_path_factory.getbasetemp()
    table, plain = Table.from_source(_source(content)), _plain(content)

    def changed(given: Table) -> Table:
        rows = np.random.RandomState(seed).permutation(len(given))[: max(1, len(given) * 2 // 3)] if len(given) else []
        name = given.columns[seed % len(given.columns)]
        steps = [
            lambda: given,
            lambda: given.take(rows),
            lambda: given.where(np.arange(len(given)) % 3 != 1),
            lambda: given.take(rows).assign({name: np.arange(len(rows)) * 3}),
            lambda: given.assign(more=0.25, text='say "x"').rename({name: "other"}),
            lambda: given.take(rows).assign(words=np.array([f"{row},{seed}" for row in rows], dtype=object)),
            lambda: given.take(rows).select(name),
            lambda: given.assign(more=None).select("more", name),
            lambda: given.take(rows).assign(more=(VALUES[seed % 5] * len(rows))[: len(rows)]),
        ]
        return steps[how]()

    got = _streamed(changed(table), scratch, **style)
    if got is not None:
        assert got == _by_pandas(changed(plain), **style)


@pytest.mark.parametrize("sep", ["\t", ";", "|", " "])
@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_other_separators_become_commas(
    tmp_path_factory: pytest.TempPathFactory, sep: str, data: st.DataObject
) -> None:
    content = data.draw(csv_files(sep))
    table, plain = Table.from_source(_source(content, sep=sep)), _plain(content, sep=sep)
    rows = np.random.RandomState(0).permutation(len(plain))
    for change in (lambda t: t, lambda t: t.take(rows), lambda t: t.assign(more="a")):
        got = _streamed(change(table), tmp_path_factory.getbasetemp())
        assert got is None or got == _by_pandas(change(plain))


@pytest.mark.usefixtures("_repeating")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=csv_files(), first=st.booleans())
@example(b"a,b\n0,1\n\n" + b"\n" * 500, True)
@example(b"a,b\n" + b"12345,1\n" * 60 + b"0xFFFFFFFFF,1\n", True)  # arrow would read a number
def test_columns_are_read_as_pandas_reads_them(content: bytes, first: bool) -> None:
    source, plain = _source(content), _plain(content)
    assert first or source.rows == len(plain)
    for name in plain.columns:
        ours, theirs = source.values(name), plain[name]
        assert pd.Series(ours, dtype=object).equals(pd.Series(theirs, dtype=object)), name
        if len(theirs):
            assert ours.dtype == theirs.dtype
    assert source.rows == len(plain)


@pytest.mark.usefixtures("_repeating")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=csv_files(), data=st.data())
def test_few_rows_are_picked_out_as_pandas_reads_them(
    monkeypatch: pytest.MonkeyPatch, content: bytes, data: st.DataObject
) -> None:
    monkeypatch.setattr(csv_source, "FEW_ROWS", 1)
    source, plain = _source(content), _plain(content)
    if not source.rows:
        return
    rows = np.array(data.draw(st.lists(st.integers(0, source.rows - 1), min_size=1, max_size=source.rows)))
    for name in plain.columns:
        ours, theirs = source.values(name, rows), plain[name][rows]
        assert ours.dtype == theirs.dtype
        assert pd.Series(ours, dtype=object).equals(pd.Series(theirs, dtype=object)), name


@pytest.mark.usefixtures("_repeating")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=csv_files())
def test_a_function_gets_the_whole_column_in_parts(content: bytes) -> None:
    table, plain = Table.from_source(_source(content)), _plain(content)
    for name in plain.columns:
        assert table.map_column(name, _shown).tolist() == _shown(plain[name]).tolist()
        assert (
            table.take([*range(len(plain))][::-1]).map_column(name, _shown).tolist()
            == _shown(plain[name])[::-1].tolist()
        )


def test_mapping_keeps_no_whole_column() -> None:
    source, parts = _source(_numbered(5000, ["1.5", "x"])), []

    def lengths(values: np.ndarray) -> np.ndarray:
        parts.append(len(values))
        return np.array([len(value) for value in values])

    assert source.map_column("x", lengths).sum() == 2500 * 3 + 2500
    assert sum(parts) == 5000
    assert max(parts) < 500
    assert not source._values


def _shown(values: np.ndarray) -> np.ndarray:
    return np.array([repr(value) for value in values.tolist()], dtype=object)


def test_picking_few_rows_keeps_no_whole_column() -> None:
    source = _source(_numbered(5000, ["1.5", "x"]))
    assert source.rows == 5000
    assert source.values("x", np.array([4999, 0, 4999])).tolist() == ["x", "1.5", "x"]
    assert not source._values
    assert source.values("id", np.arange(1, 5000)).tolist() == list(range(1, 5000))
    assert list(source._values) == ["id"]


@pytest.mark.long
def test_every_twin_is_prepared_to_the_same_bytes_in_blocks(
    competition_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What pandas makes of it is compared with the reference elsewhere."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 10_000)
    monkeypatch.setattr("mlebench.engine.row_order.BUCKET_BYTES", 10_000)
    written, prepared = [], []
    monkeypatch.setattr(
        "mlebench.engine.csv.csv_source.write_in_one_pass", lambda *given: written.append(write_in_one_pass(*given))
    )
    for stream_bytes in (1 << 30, 0):
        monkeypatch.setattr(csv_source, "STREAM_BYTES", stream_bytes)
        competition = Registry(tmp_path / f"{stream_bytes}").get_competition(competition_id)
        prepare(competition, TwinSource())
        prepared.append(_contents(competition.paths.prepared))
        for name in ("manifest.json", "manifest.files.jsonl"):
            del prepared[-1][name]  # they contain times
    assert prepared[0].keys() == prepared[1].keys()
    assert [name for name, content in prepared[0].items() if content != prepared[1][name]] == []
    assert written or competition_id not in STREAMED


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _numbered(rows: int, cells: list[str]) -> bytes:
    return ("id,x\n" + "".join(f"{row},{cells[row % len(cells)]}\n" for row in range(rows))).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfa,b\n1,2\n",
        b"a,b\n1,x\x00y\n",
        b"a,b\n1,x\ry\n",
        b'a,b\n1,5" pipe\n',
        b"a,b\n1\n",
        b"a,b\n1,2,3\n",
        b"a\n1\n\n2\n",
        b"a,b\ninf,1\n",
        b"a,b\n 1,1\n2,2\n",
        b"a,b\nx,1\n y,2\n",
        b"a,b\nx,1\n\ty,2\n",
        b'a,b\nx,"1\n 2"\n y,2\n',
        b"a,b\nx,1\n\xef\xbb\xbfy,2\n",
        b"a,b\r1,2\n3,4\n",
        b'a"b,"c\n1,2\n3"\n4,5\n',
        b"a,b\n1,2\n3,\v4\n",
        b"a,b\nx,1\n99999999999999999999,2\n".replace(b"x", b"1"),
        b"a,b\n1234567890123456789x,1\nNA,2\n",
        b"a,b\n12345678901234567890.5,1\n,2\n",
        b"a,b\n99999999999999999999,1\n",
        b"a,b\nTrue,1\n3,2\n",
        b"\na,b\n1,2\n",
        b"a,b\n  x,1\n",
        _numbered(600_000, ["7"]).replace(b"599999,7", b"599999,x"),
    ],
)
def test_what_parsers_read_differently_is_left_to_pandas(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 20)
    assert _source(content).survey is None


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,2\n",
        b"a,b\r\n1,2\r\n",
        b'a,b\n1,"x,""y"""\n',
        b'a,b\n1,"two\nlines"\n',
        b'a,b\n1,"if ""x"":\n  y\n\tz\n"\n2,w\n',
        b'a,b\n1,"' + b"x\n" * 131_070 + b" " * 1_000_000 + b'"\n',  # where pandas reads on, there are spaces
        b"a,b\n1,2\n\n3,4\n",
        b"a,b\nx  ,1\n",
        b"a,b\ntRUe,1\nFALSE,2\n",
        b"a,b\nx,1\n12345678901234567890,2\nNA,3\n",
        b"a,b\n12345678901234567890123e,1\n98765432109876543210,2\nx,3\n7,4\n",
        b"a,b\n1,2\n" + b"\n" * 4000 + b"3,4\n",
        b"a,b\n1," + b"x" * 3_000_000 + b"\n2,y\n",
        b'a,b\n1,"' + b"x\n" * 1_000_000 + b'"\n2,y\n',
        b"a,b\n1,2",
        b'"a","b"\n1,2\n',
        _numbered(300_000, ["7", "x"]),
    ],
)
def test_ordinary_files_are_streamed(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 20)
    table = Table.from_source(_source(content))
    assert _streamed(table, tmp_path) == _by_pandas(_plain(content))


def test_splits_of_a_file_in_many_blocks(tmp_path: Path) -> None:
    rng = np.random.RandomState(0)
    cells = [f"{value:.6f}" for value in rng.randn(997)] + ["", "0"]
    content = _numbered(3000, cells)
    for split in (
        lambda t: split_rows(t, test_size=0.1, seed=0),
        lambda t: split_groups(t, "x", test_size=0.2, seed=1),
    ):
        for ours, theirs in zip(split(Table.from_source(_source(content))), split(_plain(content)), strict=True):
            assert _streamed(ours, tmp_path) == _by_pandas(theirs)
            again = ours.assign(id=renumber(ours["id"], start=1)).drop("x")
            assert _streamed(again, tmp_path) == _by_pandas(theirs.assign(id=renumber(theirs["id"], start=1)).drop("x"))


def test_text_columns_stay_text_on_request(tmp_path: Path) -> None:
    content = b"id,x\n007,1\n008,2\n"
    table = Table.from_source(_source(content, dtype={"id": str}))
    assert table["id"].tolist() == ["007", "008"]
    assert _streamed(table, tmp_path) == content
    content = b"id,x\nNA,1\n,2\n"
    table = Table.from_source(_source(content, text=["id"]))
    assert table["id"].tolist() == ["NA", ""]
    assert _streamed(table, tmp_path) == content


@pytest.mark.usefixtures("_repeating")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=csv_files())
@example(b"c0,c1\nNA,NA\nnull,1\n,2\n007,\n")
def test_words_of_a_text_column_are_no_gaps(tmp_path: Path, content: bytes) -> None:
    gaps = {name: [*NA_TOKENS] for name in pd.read_csv(io.BytesIO(content), nrows=0) if name != "c0"}
    plain = _plain(content, dtype={"c0": str}, keep_default_na=False, na_values=gaps)
    source = _source(content, text=["c0"])
    table, rows = Table.from_source(source), np.random.RandomState(0).permutation(len(plain))
    for change in (lambda t: t, lambda t: t.take(rows), lambda t: t.assign(more="a")):
        for nonnumeric in (False, True):
            ours = _streamed(change(table), tmp_path, nonnumeric=nonnumeric)
            assert ours is None or ours == _by_pandas(change(plain), nonnumeric=nonnumeric)
    for name in plain.columns:
        assert pd.Series(source.values(name), dtype=object).equals(pd.Series(plain[name], dtype=object)), name


def test_a_file_is_read_twice_when_it_is_split_and_written(tmp_path: Path) -> None:
    content = _numbered(5000, ["1.5", "x"])
    opened = []

    def open_file() -> io.BytesIO:
        opened.append(1)
        return io.BytesIO(content)

    source = CsvSource(open_file, size=len(content))
    assert source.columns == ["id", "x"]
    opened.clear()
    train, test = split_rows(Table.from_source(source), test_size=0.1, seed=0)
    assert source.survey is not None
    streams = [io.BytesIO() for _ in range(3)]
    targets = [
        RowDestination(train, streams[0]),
        RowDestination(test, streams[1]),
        RowDestination(test.drop("x"), streams[2]),
    ]
    write_in_one_pass(source.open, source.survey, ",", targets, tmp_path)
    assert len(opened) == 2
    assert sum(stream.getvalue().count(b"\n") for stream in streams[:2]) == 5002


def test_narrow_floats_are_quoted_nowhere_and_printed_in_full(tmp_path: Path) -> None:
    table = Table.from_source(_source(b"a,b\n1,x\n2,y\n")).assign(c=np.array([0.1, np.nan], dtype=np.float32))
    expected = io.BytesIO()
    table.write_csv(expected, quoting="nonnumeric")
    assert expected.getvalue() == b'"a","b","c"\n1,"x",0.10000000149011612\n2,"y",""\n'
    assert _streamed(table, tmp_path, nonnumeric=True) == expected.getvalue()
