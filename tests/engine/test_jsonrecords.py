"""Lists of records are read and printed as by Python, whichever path they take."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlebench.engine.records import jsontext
from mlebench.engine.records.jsonrecords import Records, read_with_records
from mlebench.kit import encode_json

pytestmark = pytest.mark.bytes

TEXT = st.text(max_size=4) | st.sampled_from(["},\n{", '": {', "\\", "é🙂", "\x7f", "\ud800", "\x1f", "a/b", "-0"])
PLAIN = st.none() | st.booleans() | st.integers() | TEXT
NAMES = st.lists(TEXT, max_size=4, unique=True)


@st.composite
def alike(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = draw(NAMES)
    return [{name: draw(PLAIN) for name in names} for _ in range(draw(st.integers(0, 5)))]


RECORDS = alike() | st.lists(st.dictionaries(TEXT, PLAIN | st.floats() | st.lists(PLAIN, max_size=2), max_size=4))


def _read(text: str) -> dict[str, Any]:
    return read_with_records(text.encode("utf-8", "surrogatepass"), ["images"])


@given(RECORDS, st.sampled_from([None, 0, 1, 4]), st.booleans(), st.sampled_from([1, 2, 4096]))
@example([{"b": "\x7f\ud800/é", "a": 2**70}] * 3, 4, True, 2)
@example([{"b": 1, "a": 2}, {"a": 3, "b": 4}, {"a": 5}], 4, True, 2)
def test_records_are_read_and_printed_as_by_python(
    records: list[dict[str, Any]], indent: int | None, ascii: bool, at_a_time: int
) -> None:
    content = {"info": {"é": 0.5}, "images": records}
    text = json.dumps(content, ensure_ascii=ascii)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(content)
    read = _read(text)
    assert isinstance(read["images"], Records)
    names = dict.fromkeys(name for record in records for name in record)
    assert repr([*read["images"]]) == repr([{name: one[name] for name in names if name in one} for one in records])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsontext, "RECORDS", at_a_time)
        assert encode_json(read, indent=indent, sort_keys=True).decode() == json.dumps(
            content, indent=indent, sort_keys=True
        )
        assert encode_json(read, indent=indent).decode() == json.dumps(
            {**read, "images": [*read["images"]]}, indent=indent
        )


@pytest.mark.parametrize(
    "images",
    [
        '[{"a": 1, "a": 2}, {"a": -0}]',
        '[ { "a" : 1.0 } , {"a": 1e2}]',
        '[{"a": NaN}]',
        r'[{"a": "\ud800"}, {"a": "\/\u00E9"}]',
        '[{"a": {"b": 1}}, {"a": [1]}]',
        '[{"a": 1}, {"b": 1}, {}]',
        "[{}, {}]",
        "[]",
    ],
)
def test_values_that_files_may_hold(images: str) -> None:
    text = f'{{"images": {images}, "images": {images}, "n": -0.0}}'
    expected = json.loads(text)
    assert repr({name: [*value] if name == "images" else value for name, value in _read(text).items()}) == repr(
        expected
    )
    assert encode_json(_read(text), indent=4) == json.dumps(expected, indent=4).encode()


@pytest.mark.parametrize(
    "text", ['{"images": [{"a": 1},]}', '{"images": [{"a": "\x01"}]}', '{"images": [{"a": 1}', "[1"]
)
def test_damaged_files_are_not_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"line 1 column"):
        _read(text)


def test_parts_of_records() -> None:
    records = Records.of([{"id": number, "name": str(number)} for number in range(5)])
    some = records.take([3, 1]).with_values(name=["x", "y"])
    assert some == [{"id": 3, "name": "x"}, {"id": 1, "name": "y"}]
    assert records[1:3] == [{"id": 1, "name": "1"}, {"id": 2, "name": "2"}]
    assert records.values("name") == list("01234")
    with pytest.raises(KeyError):
        Records.of([{"a": 1}, {"b": 1}]).values("a")
