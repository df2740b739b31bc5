"""Groups of sequences, compared with distances that are computed letter by letter."""

from hypothesis import example, given
from hypothesis import strategies as st

from mlebench.kit import groups_of_sequences
from mlebench.kit import sequence_groups as module

SEQUENCES = st.lists(st.text("ACGU", max_size=8), max_size=12)


@given(SEQUENCES, st.integers(0, 4))
@example(["", "A"], 0)
def test_groups_are_connected_by_small_distances_and_by_nothing_else(sequences: list[str], distance: int) -> None:
    groups = groups_of_sequences(sequences, distance=distance)
    assert groups == _groups_by_merging(sequences, distance)


def test_blocks_of_sequences_make_no_difference() -> None:
    sequences = [f"{number:09b}" for number in range(2 * module._ROWS)]
    assert groups_of_sequences(sequences, distance=1) == [0] * len(sequences)
    assert groups_of_sequences(sequences, distance=0) == [*range(len(sequences))]


def _groups_by_merging(sequences: list[str], distance: int) -> list[int]:
    groups = [*range(len(sequences))]
    for first, one in enumerate(sequences):
        for second, other in enumerate(sequences):
            if _distance(one, other) <= distance:
                low, high = sorted((groups[first], groups[second]))
                groups = [low if group == high else group for group in groups]
    return groups


def _distance(one: str, other: str) -> int:
    """Row after row of the table of distances between beginnings of the two."""
    row = [*range(len(other) + 1)]
    for number, letter in enumerate(one, 1):
        before, row = row, [number]
        for position, its in enumerate(other):
            row.append(min(before[position] + (letter != its), before[position + 1] + 1, row[position] + 1))
    return row[-1]
