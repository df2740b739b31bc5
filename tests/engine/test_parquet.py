"""Parquet files: the content hash depends on the values, and rows go through unchanged."""

import base64
import io
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench.core.errors import RawDataError
from mlebench.engine import parquet
from mlebench.engine.parquet import ParquetSource, content_hash
from mlebench.kit import Output, Table, open_raw
from mlebench.kit.outputs import finish
from mlebench.kit.twins import zip_bytes

pytestmark = pytest.mark.bytes

COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "id": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "small": (pa.int16(), st.integers(-5, 5)),
    "x": (pa.float64(), st.floats()),
    "single": (pa.float32(), st.floats(width=32)),
    "text": (pa.string(), st.text(max_size=5)),
    "bytes": (pa.binary(), st.binary(max_size=5)),
    "truth": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates()),
    "list": (pa.list_(pa.int64()), st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=3)),
    "record": (
        pa.struct([("a", pa.string())]),
        st.fixed_dictionaries({"a": st.one_of(st.none(), st.text(max_size=2))}),
    ),
}


@st.composite
def arrow_tables(draw: st.DrawFn) -> pa.Table:
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4, unique=True))
    count = draw(st.integers(0, 12))
    columns = {}
    for name in names:
        kind, values = COLUMNS[name]
        cells = st.one_of(st.none(), values) if draw(st.booleans()) else values
        columns[name] = pa.array(draw(st.lists(cells, min_size=count, max_size=count)), kind)
    return pa.table(columns)


def _hash(table: pa.Table, folder: Path, **style: Any) -> str:
    pq.write_table(table, folder / "x.parquet", **style)
    return content_hash(folder / "x.parquet")


@given(arrow_tables(), st.sampled_from(["none", "snappy", "gzip", "zstd"]), st.integers(1, 5), st.booleans())
def test_the_encoding_of_a_table_does_not_count(
    tmp_path_factory: pytest.TempPathFactory, table: pa.Table, compression: str, rows: int, dictionary: bool
) -> None:
    folder = tmp_path_factory.mktemp("written")
    plain = _hash(table, folder)
    style = {"compression": compression, "row_group_size": rows, "use_dictionary": dictionary, "data_page_size": 16}
    assert _hash(table, folder, **style) == plain


@given(arrow_tables(), st.data())
def test_every_value_counts(tmp_path_factory: pytest.TempPathFactory, table: pa.Table, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("written")
    before = _hash(table, folder)
    assert _hash(table.rename_columns([f"{name}!" for name in table.column_names]), folder) != before
    if not table.num_rows:
        return
    assert _hash(table.slice(1), folder) != before
    row, place = data.draw(st.integers(0, table.num_rows - 1)), data.draw(st.integers(0, table.num_columns - 1))
    kind, values = COLUMNS[table.column_names[place]]
    cells = table.column(place).to_pylist()
    other = data.draw(values)
    changed = pa.array([*cells[:row], other, *cells[row + 1 :]], kind)
    hashed = _hash(table.set_column(place, table.column_names[place], changed), folder)
    same = repr(_gapless(cells[row], kind)) == repr(_gapless(changed[row].as_py(), kind))
    assert (hashed == before) == same


def _gapless(value: Any, kind: pa.DataType) -> Any:
    """A missing float is a NaN to anyone who reads with pandas."""
    return float("nan") if value is None and pa.types.is_floating(kind) else value


# A table as fastparquet 2026.9.0 writes it, deflated.
FASTPARQUET = (
    "eNqNlE9rnEAYxl+Na2zIpYcRBSkykGULu8s2lCUNC0lvPeQQekybyqiT7hQdrY4lm2Uhn6THfox8lpz6OTr+62pZlurB8X2f9/k9zIjX7z++"
    "QYCu0PkY6XKhIwNg6KgAoCsKvFBeGoo5hs4lRQt01lG/skr1wQAGivZ8MTgcgXrZEZ/1rJ1Raw1AlMHM71mr9tUHPQ+WNCZIB6ShRwWpluET"
    "ESw9FgI6qiuH5IHFhVgCOj5RLY2TmJ4AmLrt2Iuh4SDNRmBv55Bq6iY3P9tgGgvLUBucZSjNygSwHVSmLXvD0EFHlUPLqQy+mDfSIJQG9ZB6"
    "2a6eL0y1Z/CkOOi4cqiyVeM3Ff9JWcx7MPOXbMqCpaeEhyS3fmtrHCRREXOP8ZDe0xyfu5/W+I7RKPRKO/nOiygauzimgoREkG2l3+dFnK48"
    "sUrLGk78bzQQWNZr1N9GzO5pOGFc0K80w5tbqagT7ELjdlfxvgA9VT+G5Mzf7khR1zdj919gcwj7eR1RH3cXJWQ3sO3sQFbPvbxW8Z9bXHAW"
    "JCFtNjejRCSZrK9xxPyMZKsqD8lFSrLvBa0cftAsZwkvO6ez0/n03XRWRsXVV+F1Duh2i+vOTOVdJ8kEE7Lam9mANekAJ+lKLBPuNgZuS3RH"
    "fsGi0J29hp8HANfyd/EHd5AJfA=="
)


def test_another_library_gives_the_same_hash(tmp_path: Path) -> None:
    (tmp_path / "theirs.parquet").write_bytes(zlib.decompress(base64.b64decode(FASTPARQUET)))
    table = pa.table({"batch_id": [1, 1, 2], "azimuth": [0.5, None, 2.25], "name": ["a", "b", ""]})
    assert _hash(table, tmp_path) == content_hash(tmp_path / "theirs.parquet")
    pq.write_table(table, tmp_path / "ours.parquet")
    assert (tmp_path / "ours.parquet").read_bytes() != (tmp_path / "theirs.parquet").read_bytes()


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 3)


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("archived", [False, True])
def test_rows_and_columns_of_a_parquet_file(tmp_path: Path, archived: bool) -> None:
    stream = io.BytesIO()
    columns = {
        "batch_id": [1, 1, 2, 2, 3, 3, 3],
        "event_id": range(7),
        "azimuth": [0.5, None, 1e-7, 2.0, 3.0, 4.0, 5.0],
    }
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), stream)
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "meta.parquet").write_bytes(stream.getvalue())
    if archived:
        raw = tmp_path / "raw.zip"
        raw.write_bytes(zip_bytes({"meta.parquet": stream.getvalue()}))
    output = Output(tmp_path / "public")
    with open_raw(raw, scratch=tmp_path) as opened:
        table = opened.table("meta.parquet")
        assert table.columns == ["batch_id", "event_id", "azimuth"]
        test = table.where_in("batch_id", [1, 3])
        output.write("test.csv", test.select("event_id", "azimuth"))
        output.write("test.parquet", test.drop("azimuth"))
        output.write("new.parquet", test.select("event_id").assign(azimuth=1, place=np.arange(len(test)), name="a"))
        output.write("shuffled.parquet", table.take([6, 0, 0]))
        assert table.take([6, 0, 0])["event_id"].tolist() == [6, 0, 0]
        assert str(table.take([1, 5])["azimuth"].tolist()) == "[nan, 4.0]"
        with pytest.raises(RawDataError, match="row 7 is taken from a table of 7 rows"):
            _ = table.take([2, 7])["event_id"]
        output.write("none.parquet", table.where_in("batch_id", [9]))
        finish([output], tmp_path)
    assert (tmp_path / "public/test.csv").read_text() == "event_id,azimuth\n0,0.5\n1,\n4,3.0\n5,4.0\n6,5.0\n"
    read = {path.stem: pq.read_table(path).to_pydict() for path in (tmp_path / "public").glob("*.parquet")}
    assert read["test"] == {"batch_id": [1, 1, 3, 3, 3], "event_id": [0, 1, 4, 5, 6]}
    assert read["new"] == {"event_id": [0, 1, 4, 5, 6], "azimuth": [1] * 5, "place": list(range(5)), "name": ["a"] * 5}
    assert read["shuffled"]["event_id"] == [6, 0, 0]
    assert read["none"] == {"batch_id": [], "event_id": [], "azimuth": []}
    assert dict(output.plan.facts())["test.parquet"]["content"] == content_hash(tmp_path / "public/test.parquet")


def test_a_table_from_anywhere_can_be_parquet(tmp_path: Path) -> None:
    output = Output(tmp_path / "public")
    output.write("x.parquet", Table.from_columns({"id": [1, 2], "text": ["a", None]}))
    finish([output], tmp_path)
    assert pq.read_table(tmp_path / "public/x.parquet").to_pydict() == {"id": [1, 2], "text": ["a", None]}


def _source(tmp_path: Path, table: pa.Table, **style: Any) -> Table:
    pq.write_table(table, tmp_path / "source.parquet", **style)
    return Table.from_source(ParquetSource(tmp_path / "source.parquet"))


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("rows", [[0, 2], [2, 0], []])
def test_a_column_is_typed_as_a_whole(tmp_path: Path, rows: list[int], statistics: bool) -> None:
    columns = {"a": pa.array([1, None, 3, 4]), "b": pa.array([True, None, False, True]), "c": pa.array([1, 2, 3, 4])}
    table = _source(tmp_path, pa.table(columns), write_statistics=statistics)
    expected = pq.read_table(tmp_path / "source.parquet").to_pandas().take(rows)
    assert table.take(rows).to_pandas().dtypes.tolist() == expected.dtypes.tolist()
    stream = io.BytesIO()
    table.take(rows).write_csv(stream)
    assert stream.getvalue().decode() == expected.to_csv(index=False)


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("rows", [[4, 5], [5, 4], [0, 5], []])
def test_parquet_keeps_the_types_of_its_source(tmp_path: Path, rows: list[int]) -> None:
    days = pa.array(range(6), pa.timestamp("ns"))
    names = pa.array(list("abcabc")).dictionary_encode()
    source = _source(tmp_path, pa.table({"a": pa.array([None] * 5 + [1]), "day": days, "name": names}))
    output = Output(tmp_path / "public")
    output.write("x.parquet", source.take(rows).assign(text="x", late=[None, "y"][: len(rows)]))
    finish([output], tmp_path)
    written = pq.read_table(tmp_path / "public/x.parquet")
    assert written.schema.types[:3] == [pa.int64(), pa.timestamp("ns"), names.type]
    assert written.column("a").to_pylist() == [[None, None, None, None, None, 1][row] for row in rows]


def test_a_pandas_index_is_not_a_column(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1, 2]}, index=[5, 6]).to_parquet(tmp_path / "x.parquet")
    assert Table.from_source(ParquetSource(tmp_path / "x.parquet")).columns == ["a"]
