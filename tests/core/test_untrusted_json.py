"""JSON that an agent wrote is counted before it is parsed: memory follows from the number of its values."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlebench.core.untrusted import JsonBoundsError, parse_json

TEXTS = st.text(st.sampled_from('a,[{]}":\\\n\u2200é😀'), max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
)


def count(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inner))


@given(VALUES, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]), st.booleans())
@example(["[,{" * 100], "utf-16", False)
def test_a_text_is_parsed_if_it_holds_few_enough_values(value: Any, encoding: str, is_ascii: bool) -> None:
    """Whatever its strings look like, and however it is encoded."""
    text = json.dumps(value, ensure_ascii=is_ascii).encode(encoding)
    announced: list[int] = []
    assert parse_json(text, 2 * count(value) + 1, announce=announced.append) == value
    assert announced[0] >= count(value)
    with pytest.raises(JsonBoundsError, match="holds more than"):
        parse_json(text, count(value) - 1)


@pytest.mark.parametrize(
    "text",
    ['"' * 100_000, '"' + "\\" * 100_001, '"' + '\\"' * 100_000, "[" + '"",' * 100_000, '["' + "\\," * 100_000],
    ids=["quotes", "backslashes", "no end", "no bracket", "wrong escapes"],
)
def test_broken_strings_are_refused_at_once(text: str) -> None:
    """Counting takes time in proportion to the text: with any of these, a careless pattern would take hours."""
    with pytest.raises(ValueError, match=r"holds more than|Unterminated|Extra data|Invalid"):
        parse_json(text * 20, 1000)


def test_a_text_that_is_nested_too_deeply_is_refused_like_others() -> None:
    with pytest.raises(JsonBoundsError, match="is nested too deeply"):
        parse_json("[" * 200_000)
