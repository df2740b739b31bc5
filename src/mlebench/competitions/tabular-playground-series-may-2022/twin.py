import numpy as np

from mlebench.kit.twins import TwinFolder, rounded

FRACTIONS = (*range(7), *range(19, 27), 28)  # the numbers of columns that hold them; the others hold whole numbers
LETTERS = np.array(list("ABCDEFGHIJKLMNOPQRST"))
TEXT_LENGTH = 10
# All the digits of a double, as the original has them; shorter ones are rounded.
LONG_CELLS = (
    "-1.3723456789012347",
    "0.5069876543210123",
    "2.2250738585072014",
    "-0.10101010101010102",
    "0.30000000000000004",
    "-6.531824671413e-05",
    "9.4e-06",
)


def twin(raw: TwinFolder) -> None:
    """Signal: the target is mostly 1 where f_02 + f_21 is positive, more so where f_27 has many different letters."""
    rows = raw.count(600, least=150)
    raw.set_scaled(100_000, rows // 9)
    raw.write_csv("train.csv", _rows(raw.rng, rows, first_id=0))

    later = _rows(raw.rng, raw.count(120), first_id=rows)
    del later["target"]
    raw.write_csv("test.csv", later)
    raw.write_csv("sample_submission.csv", {"id": later["id"], "target": np.full(len(later["id"]), 0.5)})


def _rows(rng: np.random.RandomState, count: int, first_id: int) -> dict[str, np.ndarray]:
    columns: dict[str, np.ndarray] = {"id": np.arange(first_id, first_id + count)}
    for number in range(31):
        columns[f"f_{number:02}"] = (
            _fractions(rng, count, number) if number in FRACTIONS else _counts(rng, count, number)
        )
    letters = rng.randint(0, len(LETTERS), (count, TEXT_LENGTH)) // rng.randint(1, 11, (count, 1))
    columns["f_27"] = np.array(["".join(word) for word in LETTERS[letters]])
    different = (np.diff(np.sort(letters, axis=1), axis=1) > 0).sum(axis=1) + 1
    total = columns["f_02"].astype(float) + columns["f_21"].astype(float)
    columns["target"] = (rng.rand(count) < np.where(total > 0, 0.75, 0.1) + 0.02 * different).astype(int)
    return columns


def _fractions(rng: np.random.RandomState, count: int, number: int) -> np.ndarray:
    cells = rounded(rng.normal(0, 239 if number == 28 else 1, count)).astype(object)
    long = rng.rand(count) < 0.1
    cells[long] = rng.choice(LONG_CELLS, long.sum())
    return cells


def _counts(rng: np.random.RandomState, count: int, number: int) -> np.ndarray:
    most = {29: 1, 30: 2}.get(number, 15)
    return rng.binomial(most, 0.3 if number == 29 else 0.15, count)
