"""JSON lists item by item: the same items as json reads at once, wherever the pieces of text end."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench.engine.records import jsonlists
from mlebench.engine.records.jsonlists import json_items
from mlebench.kit import open_raw

pytestmark = pytest.mark.bytes

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@given(st.lists(VALUES, max_size=6), st.integers(1, 9), st.sampled_from([None, 0, 3]), st.booleans())
def test_items_match_reading_at_once(items: list[Any], piece: int, indent: int | None, ascii: bool) -> None:
    content = json.dumps(items, indent=indent, ensure_ascii=ascii).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonlists, "PIECE_CHARACTERS", piece)
        assert list(json_items(io.BytesIO(b" " * piece + content + b"\n"))) == items


@pytest.mark.parametrize("piece", [1, 2, 3, 1000])
@pytest.mark.parametrize("numbers", ["[12.5, 1e-05, -3, 1E+2]", "[ 12.5e3,7 ]"])
def test_numbers_are_not_cut_where_a_piece_ends(piece: int, numbers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlists, "PIECE_CHARACTERS", piece)
    assert list(json_items(io.BytesIO(numbers.encode()))) == json.loads(numbers)


@pytest.mark.parametrize("text", ["", "  ", "{}", "[1", "[1,", "[1,]", "[,1]", "[1 2]", '["a]', "12"])
def test_an_incomplete_list_is_an_error(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        list(json_items(io.BytesIO(text.encode())))


def test_the_first_items_are_there_before_the_rest_is_read(tmp_path: Path) -> None:
    content = json.dumps([{"n": number} for number in range(400_000)]).encode()
    stream = io.BytesIO(content)
    items = json_items(stream)
    assert next(items) == {"n": 0}
    assert stream.tell() < len(content) / 2
    (tmp_path / "list.json").write_text("[[1], 2]")
    with open_raw(tmp_path) as raw:
        assert list(raw.json_items("list.json")) == [[1], 2]
        assert next(raw.json_items("list.json")) == [1]
