"""Golden figures are kept in a short form that loses nothing."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from mlebench.contract.golden import condensed, expanded

names = st.text("ab<!. *", min_size=1).filter(lambda name: not name.endswith("*"))
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
prints = st.one_of(
    st.just("0" * 32), paths.map("raw: {}".format), st.lists(paths, min_size=2).map(lambda p: f"raw: {'!'.join(p)}")
)
folders = st.dictionaries(paths, prints, max_size=6)


@settings(max_examples=settings().max_examples // 2)
@given(st.dictionaries(paths, st.one_of(prints, folders), max_size=8))
@example(
    {"public/1.png": "raw: train.zip!cat.1.png", "public/2.png": "raw: train.zip!2.png", "x": {"2.png": "raw: 2.png"}}
)
def test_nothing_is_lost(files: dict[str, Any]) -> None:
    assert expanded(condensed(files)) == files


def test_placed_files_are_joined() -> None:
    files = {"public/train/a.png": "raw: train/a.png", "public/train/b.png": "raw: train/7.png", "public/x.csv": "0"}
    assert condensed(files) == {"public/train/*": {"raw: train/*": "a.png/b.png<7.png"}, "public/x.csv": "0"}
