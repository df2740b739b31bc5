"""Which raw files get which names: sorted, complete, and small, however many there are."""

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlebench.engine.output import placements as module
from mlebench.engine.output.placements import Placements
from mlebench.engine.trees import FolderTree, TreeFile

TREES = [FolderTree(Path(name)) for name in "abc"]
# Every character that a file name may have, including bytes that are not UTF-8.
NAMES = st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=5)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(NAMES, st.sampled_from(TREES), NAMES), max_size=40))
def test_placements_come_sorted_and_complete(given: list[tuple[str, FolderTree, str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RUN", 8)
        patch.setattr(module, "BLOCK", 3)
        placed = Placements()
        for name, tree, source in given:
            placed.add(name, TreeFile(tree, source))
    assert len(placed) == len(given)
    for _ in range(2):
        found = list(placed)
        assert [name for name, _, _ in found] == sorted(name for name, _, _ in given)
        assert sorted(found, key=repr) == sorted(given, key=repr)


def test_a_placement_takes_about_as_many_bytes_as_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RUN", 1 << 12)
    monkeypatch.setattr(module, "BLOCK", 1 << 6)
    placed, count = Placements(), 10 << 12
    tracemalloc.start()
    for number in range(count):
        placed.add(f"train/{number % 100}/{number:012}.png", TreeFile(TREES[0], f"images/{number:012}.png"))
    used, _ = tracemalloc.get_traced_memory()
    for _ in placed:
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / count < 70
    assert peak / count < 140, "one run is sorted at a time, and one block of each unpacked"
