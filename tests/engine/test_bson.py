"""BSON files, against the library that everyone uses."""

import io
import struct
from pathlib import Path
from typing import Any

import bson
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlebench.core.errors import PrerequisiteError
from mlebench.engine.records import bson as ours
from mlebench.engine.records.bson import BsonSource, encode_document
from mlebench.engine.records.record_source import write_records_in_one_pass
from mlebench.kit import Output, Table, open_raw, split_rows
from mlebench.kit.outputs import finish

pytestmark = pytest.mark.bytes

INT64 = st.integers(-(2**63), 2**63 - 1)
simple = st.one_of(INT64, st.text(), st.binary(), st.booleans(), st.none(), st.floats(allow_nan=False))
names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)
values = st.recursive(
    simple,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)
documents = st.fixed_dictionaries(
    {"_id": INT64}, optional={"category": INT64, "imgs": values, "x": simple, "": simple}
).map(lambda record: {"_id": record["_id"], **record})  # the library puts it first


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "BLOCK_BYTES", 64)


def _records(content: bytes) -> Table:
    return Table.from_source(BsonSource(lambda: io.BytesIO(content), len(content)))


def _written(tables: list[Table], scratch: Path) -> list[bytes]:
    streams = [io.BytesIO() for _ in tables]
    source: Any = tables[0].source
    write_records_in_one_pass(source, list(zip(tables, streams, strict=True)), scratch)
    return [stream.getvalue() for stream in streams]


@given(st.lists(documents, max_size=8))
def test_documents_are_written_as_the_library_writes_them(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]]
) -> None:
    content = b"".join(bson.encode(record) for record in records)
    assert b"".join(encode_document(record) for record in records) == content
    table = _records(content)
    assert len(table) == len(records)
    if not records:
        return
    without = [{name: value for name, value in record.items() if name != "category"} for record in records]
    changed = [{"_id": number, "x": "new"} for number, _ in enumerate(records)]
    tables = [
        table,
        table.select(*(name for name in table.columns if name != "category")),
        table.select("_id").assign(_id=np.arange(len(records)), x="new"),
    ]
    whole, fewer, new = _written(tables, tmp_path_factory.mktemp("scratch"))
    assert whole == content
    assert [bson.decode(document) for document in _split(fewer)] == without
    assert new == b"".join(map(bson.encode, changed))


@given(st.lists(st.fixed_dictionaries({"_id": INT64, "imgs": st.lists(values), "t": st.text()}), min_size=1))
def test_fields_have_the_values_that_were_written(records: list[dict[str, Any]]) -> None:
    table = _records(b"".join(map(bson.encode, records)))
    assert table.columns == list(bson.decode(bson.encode(records[0])))
    for name in table.columns:
        assert table[name].tolist() == [record[name] for record in records]
    assert table["_id"].dtype == np.int64


def test_columns_too_large_to_keep_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlebench.engine.records.record_source.COLLECT_BYTES", 30)
    table = _records(b"".join(bson.encode({"_id": number, "category": -number}) for number in range(20)))
    assert table["_id"].tolist() == list(range(20))
    assert table.take([7, 3])["category"].tolist() == [-7, -3]


def test_a_field_that_some_documents_lack() -> None:
    table = _records(b"".join(map(bson.encode, [{"_id": 1}, {"_id": 2, "x": "a"}, {"_id": 3, "x": None}])))
    assert table.columns == ["_id", "x"]
    assert [str(value) for value in table["x"]] == ["nan", "a", "nan"]


def test_a_split_that_keeps_the_order_of_the_file(tmp_path: Path) -> None:
    records = [
        {"_id": 7 * number, "category_id": 10**9, "imgs": [{"picture": b"\xff\xd8" * number}]} for number in range(50)
    ]
    table = _records(b"".join(map(bson.encode, records)))
    train, test = split_rows(table, test_size=0.1, seed=0)
    permuted, kept, cut = _written([train, train.in_file_order(), test.in_file_order().drop("category_id")], tmp_path)
    tests = set(test["_id"].tolist())
    assert kept == b"".join(bson.encode(record) for record in records if record["_id"] not in tests)
    assert [bson.decode(document)["_id"] for document in _split(permuted)] == train["_id"].tolist()
    assert [bson.decode(document) for document in _split(cut)] == [
        {"_id": record["_id"], "imgs": record["imgs"]} for record in records if record["_id"] in tests
    ]


def test_fields_keep_their_order_and_the_id_comes_first(tmp_path: Path) -> None:
    content = bson.encode({"_id": 1, "a": 1, "b": 2, "c": 3}) + bson.encode({"_id": 2, "c": 1, "b": 2, "a": 3})
    table = _records(content)
    dropped, chosen, added = _written(
        [table.drop("b"), table.select("c", "_id"), table.select("_id").assign(x=["a", None])], tmp_path
    )
    expected = [[("_id", 1), ("a", 1), ("c", 3)], [("_id", 2), ("c", 1), ("a", 3)]]
    assert [list(bson.decode(document).items()) for document in _split(dropped)] == expected
    assert chosen == bson.encode({"_id": 1, "c": 3}) + bson.encode({"_id": 2, "c": 1})
    assert added == bson.encode({"_id": 1, "x": "a"}) + bson.encode({"_id": 2, "x": None})
    with pytest.raises(ValueError, match="cannot be the name"):
        _written([table.assign({"x\0y": 1})], tmp_path)
    with pytest.raises(TypeError, match="cannot be a value"):
        _written([table.assign(x=[{1}, {2}])], tmp_path)


def test_a_document_is_written_once(tmp_path: Path) -> None:
    (tmp_path / "train.bson").write_bytes(bson.encode({"_id": 1}) + bson.encode({"_id": 2}))
    output = Output(tmp_path / "public")
    with open_raw(tmp_path, scratch=tmp_path) as raw:
        output.write_records("once.bson", raw.records("train.bson").take([1]))
        output.write_records("twice.bson", raw.records("train.bson").take([1, 1]))
        with pytest.raises(ValueError, match="only once"):
            finish([output], tmp_path)
    assert (tmp_path / "public/once.bson").read_bytes() == bson.encode({"_id": 2})


THREE = b"".join(bson.encode({"_id": n, "imgs": [{"p": b"abc" * n}], "t": "x" * n, "b": True}) for n in range(3))


@example(166, 3)  # a document of one byte
@given(st.integers(0, len(THREE) - 1), st.integers(0, 255))
def test_damage_is_noticed_or_harmless(tmp_path_factory: pytest.TempPathFactory, place: int, byte: int) -> None:
    """Whatever is read is what the library reads from it too."""
    damaged = THREE[:place] + bytes([byte]) + THREE[place + 1 :]
    try:
        table = _records(damaged)
        (written,) = _written([table], tmp_path_factory.mktemp("scratch"))
    except PrerequisiteError:
        return
    assert written == damaged
    assert b"".join(map(bson.encode, bson.decode_all(damaged))) == damaged


@pytest.mark.parametrize("cut", [1, 3, 20, 30])
def test_a_truncated_file_is_refused(cut: int) -> None:
    content = bson.encode({"_id": 1, "x": "text"}) * 2
    with pytest.raises(PrerequisiteError, match="BSON file is damaged"):
        len(_records(content[:-cut]))


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (bson.encode({"_id": bson.ObjectId("0" * 24)}), "a value of kind 7"),
        (struct.pack("<i", 21) + b"\x10a\0\1\0\0\0\x10_id\0\1\0\0\0\0", "_id is not its first field"),
        (
            struct.pack("<i", 20) + b"\4a\0" + struct.pack("<i", 12) + b"\x107\0\1\0\0\0\0\0",
            "an array with names of its own",
        ),
        (struct.pack("<i", 9) + b"\x08a\0\2\0", "an unusual value of kind 8"),
    ],
)
def test_documents_an_encoder_would_change_are_refused(document: bytes, what: str) -> None:
    with pytest.raises(PrerequisiteError, match=what):
        len(_records(document))


def _split(content: bytes) -> list[bytes]:
    found = []
    while content:
        (length,) = struct.unpack_from("<i", content)
        found.append(content[:length])
        content = content[length:]
    return found
