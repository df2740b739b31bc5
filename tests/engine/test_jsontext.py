"""JSON over many lines is Python's, byte for byte."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench.engine.records import jsontext
from mlebench.kit import encode_json

pytestmark = pytest.mark.bytes

TEXT = st.text(max_size=4) | st.sampled_from(["},\n{", '": {', "a: [", "\\", "é🙂"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
RECORDS = st.lists(st.dictionaries(TEXT, SCALARS, max_size=4), max_size=6)
VALUES = st.recursive(
    SCALARS | RECORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=12,
)


@given(VALUES, st.integers(0, 4), st.booleans(), st.sampled_from([1, 2, 4096]))
def test_any_value_is_printed_as_python_prints_it(value: Any, indent: int, sort_keys: bool, at_a_time: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsontext, "RECORDS", at_a_time)
        ours = encode_json(value, indent=indent, sort_keys=sort_keys)
    assert ours.decode() == json.dumps(value, indent=indent, sort_keys=sort_keys)


@pytest.mark.parametrize("value", [{1: "a", None: [{}]}, [{2.5: 1}, {True: 2}], {"a": {3: {"b": []}}}], ids=str)
def test_keys_that_are_not_text_are_printed_as_text(value: Any) -> None:
    assert encode_json(value, indent=4).decode() == json.dumps(value, indent=4)


def test_many_records_are_printed_the_same() -> None:
    value = {"images": [{"id": number, "file_name": f"images/{number}.jpg", "width": 600} for number in range(200_000)]}
    assert encode_json(value, indent=4, sort_keys=True).decode() == json.dumps(value, indent=4, sort_keys=True)
