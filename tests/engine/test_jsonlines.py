"""JSON lines come out as pandas writes what it has read, whichever way they go."""

import io
import json
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlebench.core.errors import PrerequisiteError
from mlebench.engine.progress import SILENT_STAGE
from mlebench.engine.records import record_source
from mlebench.engine.records.jsonlines import JsonLinesSource, RecordFormat
from mlebench.engine.records.record_source import write_records_in_one_pass
from mlebench.engine.tables import STREAM_BYTES, TableOutput
from mlebench.kit import Table, split_rows

pytestmark = pytest.mark.bytes

TEXTS = [
    "",
    "a",
    "</P>",
    "1",
    "-1.5",
    "nan",
    "inf",
    "1_000",
    " 7 ",
    "Zoë",
    "東京",
    "😀",
    'say "hi"',
    "back\\slash",
    "a/b",
]
TEXTS += ["tab\t", "line\nend", "\x00", "\x1f", "\x7f", "\u2028", "true", "null", "2020-01-01", "2020-01-01T00:00:00Z"]
INTS = [0, 1, -1, 255, 2**31, -(2**31), 2**53 + 1, -(2**62), 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64]
FLOATS = [0.5, -0.0, 1.0, 1e-7, 123456.789, 1e15, 1e20, 0.1 + 0.2]
NAMES = ["id", "text", "a/b", "naïve", "created_at", "timestamp", "Date", "modified", "updates"]

ints, texts, floats = st.sampled_from(INTS), st.sampled_from(TEXTS), st.sampled_from(FLOATS)
simple = st.one_of(ints, texts, st.booleans(), st.none())
nested = st.recursive(
    simple,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
lists = st.lists(nested, max_size=3)
COLUMNS = {
    "ints": ints,
    "texts": texts,
    "words": st.sampled_from(["x", "y/z", "Ω"]),
    "floats": floats,
    "truths": st.booleans(),
    "lists": lists,
    "lists of floats": st.lists(floats, max_size=3),
    "records": st.dictionaries(texts, nested, max_size=3),
    "gaps": st.one_of(ints, st.none()),
    "anything": st.one_of(nested, floats),
}


@st.composite
def json_files(draw: st.DrawFn) -> list[dict[str, Any]]:
    kinds = draw(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4))
    count = draw(st.integers(1, 8))
    return [{name: draw(COLUMNS[kind]) for name, kind in kinds.items()} for _ in range(count)]


def _file(records: list[dict[str, Any]], **style: Any) -> bytes:
    return "".join(json.dumps(record, **style) + "\n" for record in records).encode()


def _records(content: bytes, chunk_lines: int | None = None, *, large: bool = False) -> Table:
    """Records of a small file, which are parsed once, or as if from a large one."""
    size = STREAM_BYTES if large else len(content)
    return Table.from_source(JsonLinesSource(lambda: io.BytesIO(content), size, chunk_lines))


def _written(tables: list[Table], scratch: Path) -> list[bytes]:
    streams = [io.BytesIO() for _ in tables]
    records: Any = tables[0].source
    write_records_in_one_pass(records, list(zip(tables, streams, strict=True)), scratch)
    return [stream.getvalue() for stream in streams]


def _frames(content: bytes, chunk_lines: int | None) -> list[pd.DataFrame]:
    reader = pd.read_json(io.BytesIO(content), orient="records", lines=True, chunksize=chunk_lines)
    return [reader] if isinstance(reader, pd.DataFrame) else [pd.DataFrame(chunk) for chunk in reader]


def _by_pandas(content: bytes, chunk_lines: int | None, change: Callable[[pd.DataFrame], pd.DataFrame]) -> bytes:
    frames = [change(frame) for frame in _frames(content, chunk_lines)]
    return "".join(_lines(frame) for frame in frames if len(frame)).encode()


def _lines(frame: pd.DataFrame | pd.Series) -> str:
    lines = frame.to_json(orient="records", lines=True)
    assert lines is not None
    return lines


@pytest.mark.filterwarnings("ignore::FutureWarning")  # pandas 2.2, of dates with time zones
@given(json_files(), st.sampled_from([None, 1, 2, 3, 100]), st.booleans(), st.booleans())
@example([{"a/b": "x", "id": 2**63 - 1, "lists": [{"😀": [1, None, True, "\x7f</P>"]}]}] * 3, 2, True, True)
@example([{"id": 1}, {"id": 2, "text": "x"}], None, False, False)
@example([{"text": "x", "id": 1}, {"text": [1, 2], "id": 2}], None, True, True)
@example([{"text": "x", "id": 1}, {"text": 1e-7, "id": 2}], 2, True, True)
@example([{"text": "1"}, {"text": "2"}, {"text": "x"}], 2, False, True)
def test_records_come_out_as_pandas_writes_them(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[dict[str, Any]],
    chunk_lines: int | None,
    ascii: bool,
    large: bool,
) -> None:
    content = _file(records, ensure_ascii=ascii)
    try:
        frames = _frames(content, chunk_lines)
    except (ValueError, OverflowError):
        return  # what pandas cannot read is nobody's data
    if any(kind.kind == "M" for frame in frames for kind in frame.dtypes):
        with pytest.raises(ValueError, match="for dates, which its versions print differently"):
            _written([_records(content, chunk_lines, large=large)], tmp_path_factory.mktemp("scratch"))
        return
    table = _records(content, chunk_lines, large=large)
    expected = _by_pandas(content, chunk_lines, lambda frame: frame)
    dropped = table.columns[0]
    fewer = _by_pandas(content, chunk_lines, lambda frame: frame.drop(columns=[dropped]))
    scratch = tmp_path_factory.mktemp("scratch")
    if len(table.columns) > 1:
        assert _written([table, table.drop(dropped)], scratch) == [expected, fewer]
    else:
        assert _written([table], scratch) == [expected]


# Parts of texts, and numbers, as they may be in a file: some are printed unchanged, others differently.
LETTERS = ["a", "1", "é", "/", "😀", "\x7f", "-0", ".5", '":', "},{"]
ESCAPES = [
    r"\u00e9",
    r"\u00E9",
    r"\/",
    r"\"",
    r"\\",
    r"\n",
    r"\u000a",
    r"\b",
    r"\u0008",
    r"\u001f",
    r"\u001F",
    r"\u007f",
]
ESCAPES += [r"\u0080", r"\u00ff", r"\u0100", r"\ud7ff", r"\ue000", r"\uffff", r"\udbff\udfff", r"\\ud83d\ude00"]
ESCAPES += [r"\ud83d\ude00", r"\uD83D\uDE00", r"\ud83d", r"\ude00", r"\u2028", r"\\u00E9", r"\\/", r"\u0041", r"\u0000"]
NUMBERS = [
    "0",
    "-0",
    "7",
    str(2**63 - 1),
    str(2**63),
    str(2**64 - 1),
    str(2**64),
    str(-(2**63) - 1),
    "0.5",
    "1e5",
    "-0.0",
]
spaces = st.sampled_from(["", "", " ", " \t "])
written_texts = st.lists(
    st.sampled_from([*(letter.replace('"', r"\"") for letter in LETTERS), *ESCAPES]), max_size=4
).map(lambda parts: f'"{"".join(parts)}"')
written_ints = st.sampled_from(NUMBERS[:4])


def _lists(items: st.SearchStrategy[str], ends: str) -> st.SearchStrategy[str]:
    parts = st.tuples(spaces, st.lists(items, max_size=3), spaces)
    return parts.map(lambda drawn: f"{ends[0]}{drawn[0]}{f'{drawn[2]},{drawn[0]}'.join(drawn[1])}{drawn[2]}{ends[1]}")


def _records_of(values: st.SearchStrategy[str], names: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return _lists(st.tuples(names, spaces, values).map(lambda pair: f"{pair[0]}:{pair[1]}{pair[2]}"), "{}")


def _nested(simple: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Lists and records; a record may repeat a name."""
    names = st.sampled_from(['"a"', r'"\u0062"', '"b"', '"c/d"', '""'])
    return st.recursive(simple, lambda inner: _lists(inner, "[]") | _records_of(inner, names), max_leaves=5)


plain_values = _nested(st.one_of(written_texts, written_ints, st.sampled_from(["true", "null", str(2**64 - 1)])))
odd_values = _nested(st.one_of(written_texts, st.sampled_from([*NUMBERS, "true", "null", "NaN", "-Infinity"])))
WRITTEN = {
    "texts": written_texts,
    "words": written_texts.map(lambda text: f'"x{text[1:]}'),
    "ints": written_ints,
    "lists": _lists(plain_values, "[]"),
    "records": _records_of(plain_values, st.sampled_from(['"a"', '"b"'])),
    "anything": odd_values,
}


@st.composite
def written_files(draw: st.DrawFn) -> str:
    """Lines as other programs may write them."""
    kinds = st.sampled_from(["words", "words", "ints", "lists", "records", "texts", "anything"])
    fields = draw(st.dictionaries(st.sampled_from(["id", r"t\u0065xt", "a/b", "é"]), kinds, min_size=1, max_size=3))
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        names = [*draw(st.permutations(sorted(fields))), *draw(st.lists(st.sampled_from(sorted(fields)), max_size=1))]
        pairs = [f'"{name}"{draw(spaces)}:{draw(spaces)}{draw(WRITTEN[fields[name]])}' for name in names]
        lines.append(f"{draw(spaces)}{{{draw(spaces)}{', '.join(pairs)}}}\n")
    return "".join(lines)


@given(written_files(), st.sampled_from([None, 1, 2]))
@example('{"id": -0, "x": [-0, {"a": 1, "a": -0}]}\n{"x": [], "id": 1}\n', None)
@example('{"t": "\\u00E9\\/\\\\/\\\\u00E9\\ud83d\\ude00\\u007f\x7f", "id": 1, "t": "\\n\\u000a"}\n', None)
@example('{"a": "x", "b": {"c": "\\ud83d"}}\n', None)
@example('{"a": "x\\\\ud83d\\ude00"}\n', None)
@example('{"a": "x\\\\\\ud83d\\ude00\\ud83d\\ude01"}\n', None)
@example('{"a": "x", "b": [18446744073709551616]}\n', None)
def test_however_a_file_is_written_it_comes_out_as_pandas_writes_it(
    tmp_path_factory: pytest.TempPathFactory, text: str, chunk_lines: int | None
) -> None:
    content = text.encode()
    try:
        expected = _by_pandas(content, chunk_lines, lambda frame: frame)
        columns = {(*frame.columns,) for frame in _frames(content, chunk_lines)}
    except (ValueError, OverflowError):
        return  # what pandas cannot read is nobody's data
    if len(columns) > 1:
        return  # refused, see below
    table = _records(content, chunk_lines, large=True)
    for name in table.columns:  # alone first: then only this field is read
        whole = pd.concat(_frames(content, chunk_lines))[name] if chunk_lines is None else None
        values = table[name].tolist()
        assert whole is None or repr(values) == repr([np.nan if value is None else value for value in whole])
    assert _written([table], tmp_path_factory.mktemp("scratch")) == [expected]


@given(st.integers(1, 40), st.sampled_from([None, 3, 7]), st.integers(0, 99), st.booleans(), st.integers(1, 200))
def test_rows_in_any_order(
    tmp_path_factory: pytest.TempPathFactory,
    count: int,
    chunk_lines: int | None,
    seed: int,
    large: bool,
    printed_bytes: int,
) -> None:
    content = _file([{"id": 10 * number, "text": f"n{number}/", "x": [number]} for number in range(count)])
    lines = _by_pandas(content, None, lambda frame: frame).splitlines(keepends=True)
    order = np.random.RandomState(seed).permutation(count)
    table = _records(content, chunk_lines, large=large)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_source, "PRINTED_BYTES", printed_bytes)
        written = _written([table.take(order), table.assign(id=[*range(count)])], tmp_path_factory.mktemp("scratch"))
    renumbered = _by_pandas(content, None, lambda frame: frame.assign(id=range(count)))
    assert written == [b"".join(lines[row] for row in order), renumbered]
    twice = np.concatenate([order, order[:2]])
    assert table.take(twice)["id"].tolist() == (10 * twice).tolist()
    assert table.take(twice)["x"].tolist() == [[row] for row in twice]


def test_a_split_within_each_chunk(tmp_path: Path) -> None:
    """As in a competition whose file is too large for a data frame."""
    content = _file([{"id": -(10**18) - number, "text": f"</P> {number}", "label": [number]} for number in range(25)])
    table = _records(content, 10, large=True)
    parts = [split_rows(table.take(range(start, min(start + 10, 25))), test_size=0.1, seed=0) for start in (0, 10, 20)]
    train, test = (Table.concat(side) for side in zip(*parts, strict=True))
    test = test.assign(id=[str(id) for id in test["id"].tolist()])
    train_lines, test_lines = _written([train, test.drop("label")], tmp_path)
    assert [json.loads(line)["id"] for line in test_lines.splitlines()] == test["id"].tolist()
    assert test_lines.splitlines()[0] == b'{"id":"-1000000000000000002","text":"<\\/P> 2"}'
    assert sorted(json.loads(line)["label"][0] for line in train_lines.splitlines()) == sorted(
        set(range(25)) - {label[0] for label in test["label"]}
    )


@pytest.mark.parametrize("values", [[0.5, 1.0], [True, False], ["1", "2"], [1, 2], [None, "x"]])
def test_columns_of_any_kind_can_be_set(tmp_path: Path, values: list[Any]) -> None:
    content = _file([{"id": 1, "text": "x"}, {"id": 2, "text": "y"}])
    expected = _by_pandas(content, None, lambda frame: frame.assign(new=values))
    assert _written([_records(content).assign(new=values)], tmp_path) == [expected]
    expected = _by_pandas(content, None, lambda frame: frame.assign(new=values[0]))
    if values[0] is not None:
        assert _written([_records(content).assign(new=values[0])], tmp_path) == [expected]


def test_blank_lines_and_line_ends_do_not_count(tmp_path: Path) -> None:
    content = b'{"id": 1, "text": "a"}\r\n\n  \n{"id": 2, "text": "b"}'
    table = _records(content, 2)
    assert len(table) == 2
    assert table["id"].tolist() == [1, 2]
    assert _written([table], tmp_path) == [b'{"id":1,"text":"a"}\n{"id":2,"text":"b"}\n']


def test_fields_that_change_between_chunks_are_refused(tmp_path: Path) -> None:
    content = _file([{"id": 1}, {"id": 2, "more": 3}])
    for large in (True, False):
        with pytest.raises(ValueError, match="come after some with"):
            _written([_records(content, 1, large=large)], tmp_path)


@pytest.mark.parametrize("place", [1, 3])
def test_a_damaged_file_is_named(tmp_path: Path, place: int) -> None:
    lines = [b'{"id": 1, "text": "a"}\n'] * 4
    lines[place] = b'{"id": 1, "text": "\xff"}\n'
    table = _records(b"".join(lines), 2, large=True)
    table.source.label = "raw/lines.jsonl"
    with pytest.raises(PrerequisiteError, match=r"raw/lines.jsonl cannot be read .*; get the complete data again"):
        table.source.write([TableOutput(table, RecordFormat(), io.BytesIO())], tmp_path, SILENT_STAGE)


@pytest.mark.parametrize("chunk_lines", [None, 2])
def test_a_record_that_is_cut_in_two_is_reported(tmp_path: Path, chunk_lines: int | None) -> None:
    content = b'{"id": 1, "text": "a\n b"}\n{"id": 2, "text": "c"}\n'
    with pytest.raises(ValueError, match="does not end with its line"):
        _written([_records(content, chunk_lines)], tmp_path)


def test_values_match_pandas() -> None:
    content = _file([{"id": 1, "x": 0.1 + 0.2, "t": "a"}, {"id": 2, "x": None, "t": None}])
    table = _records(content)
    (frame,) = _frames(content, None)
    assert table["x"].tolist()[0] == frame["x"].tolist()[0]
    assert np.isnan(table["x"][1])
    assert table["id"].dtype == np.int64
    assert table["t"][0] == "a"


@pytest.mark.parametrize("name", ["datetime", "2020-01-01", "1", "created_at"])
def test_names_and_values_that_pandas_converts_are_refused(tmp_path: Path, name: str) -> None:
    content = _file([{name: "2020-01-01"}, {name: "2020-01-02"}])
    with pytest.raises(ValueError, match="pandas takes"):
        _written([_records(content)], tmp_path)


@pytest.mark.parametrize("large", [True, False])
def test_chunks_of_blank_lines_hold_no_records(tmp_path: Path, large: bool) -> None:
    content = b'{"a":"x"}\n{"a":"y"}\n\n\n{"a":"z"}\n'
    table = _records(content, 2, large=large)
    assert table["a"].tolist() == ["x", "y", "z"]
    assert _written([table], tmp_path) == [b'{"a":"x"}\n{"a":"y"}\n{"a":"z"}\n']


@pytest.mark.parametrize("text", ["\x7f", "é", "a/b", "\n", '"', "\\"])
def test_added_texts_and_names_are_printed_as_pandas_prints_them(tmp_path: Path, text: str) -> None:
    content = _file([{"a": "x"}])
    expected = _by_pandas(content, None, lambda frame: frame.assign(**{"b": text, text: 1}))
    assert _written([_records(content).assign({"b": text, text: 1})], tmp_path) == [expected]


@pytest.mark.parametrize("ends", [["\r"], ["\r\n"], ["\n\r\n"], ["\n", "\n", "\r"]])
@pytest.mark.parametrize("chunk_lines", [1, 2, 3])
def test_chunks_count_lines_as_a_text_file_does(tmp_path: Path, ends: list[str], chunk_lines: int) -> None:
    """Where pandas types chunks, it matters which lines come together: `1` and `2` alone are numbers."""
    texts = ["1", "2", "x", "3", "4", "5", "y"]
    records = [json.dumps({"id": id, "text": text}) for id, text in enumerate(texts)]
    content = "".join(record + end for record, end in zip(records, cycle(ends), strict=False)).encode()
    (tmp_path / "file").write_bytes(content)
    with pd.read_json(tmp_path / "file", orient="records", lines=True, chunksize=chunk_lines) as chunks:
        expected = "".join(_lines(chunk) for chunk in chunks if len(chunk))
    assert _written([_records(content, chunk_lines)], tmp_path) == [expected.encode()]
