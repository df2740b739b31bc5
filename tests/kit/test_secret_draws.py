"""Draws that agents cannot repeat: they depend on every value and on the order of the values, and on nothing else."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mlebench.kit import open_raw, secret_order, secret_random

VALUES = st.lists(st.one_of(st.integers(), st.text()), max_size=20)


@given(VALUES, VALUES)
def test_equal_values_give_equal_draws_and_others_give_others(values: list[object], others: list[object]) -> None:
    draws = secret_random(values).getrandbits(256)
    assert draws == secret_random(iter(values)).getrandbits(256)
    assert (draws == secret_random(others).getrandbits(256)) == ([*map(str, values)] == [*map(str, others)])


def test_draws_are_the_same_on_every_machine() -> None:
    rng = secret_random(["a", 12])
    assert [rng.randrange(100) for _ in range(5)] == [42, 71, 13, 48, 28]


def test_files_are_ordered_by_their_sizes_in_the_order_of_the_raw_data(tmp_path: Path) -> None:
    def order(sizes: list[int]) -> list[int]:
        folder = tmp_path / "-".join(map(str, sizes))
        folder.mkdir()
        for number, size in enumerate(sizes):
            (folder / f"{number}.bin").write_bytes(bytes(size))
        with open_raw(folder) as raw:
            return secret_order(raw.files("*.bin")).tolist()

    orders = [order(sizes) for sizes in ([5, 6, 7, 8, 9, 10], [6, 5, 7, 8, 9, 10], [5, 6, 7, 8, 9, 11])]
    assert [sorted(rows) for rows in orders] == [[0, 1, 2, 3, 4, 5]] * 3
    assert len({*map(tuple, orders)}) == 3
