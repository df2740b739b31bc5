import numpy as np

from mlebench.kit import join_text
from mlebench.kit.twins import TwinFolder, rounded

COORDINATES = ("pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude")
CENTRE = (-73.975, 40.75)
KM_PER_DEGREE = (84.3, 111.2)
# All the digits of a double, as part of the original has them; shorter ones are rounded.
LONG_CELLS = {
    "longitude": ("-73.982111999999987", "-73.9870779991150", "-73.954895019531250", "-73.78208166666667"),
    "latitude": ("40.748763000000004", "40.7617454528809", "40.765312194824219", "40.64481833333333"),
}
COUPONS = rb"{\rtf1\ansi{\fonttbl\f0\fswiss Helvetica;}\f0\fs24 How to redeem a coupon: ask your host.\par}"


def twin(raw: TwinFolder) -> None:
    """Signal: the fare is 2.50 dollars and about 1.60 for each kilometre between pickup and dropoff."""
    rides = raw.count(1200, least=60)
    raw.set_scaled(9914, max(10, rides // 10))
    raw.write_csv("train.csv", _rides(raw.rng, rides))

    later = _rides(raw.rng, raw.count(60, least=10))
    del later["fare_amount"]
    raw.write_csv("test.csv", later)
    raw.write_csv("sample_submission.csv", {"key": later["key"], "fare_amount": [11.35] * len(later["key"])})
    raw.write("GCP-Coupons-Instructions.rtf", COUPONS)


def _rides(rng: np.random.RandomState, count: int) -> dict[str, np.ndarray]:
    stamps, keys = _times(rng, count)
    pickup = rounded(CENTRE + rng.normal(0, 0.03, (count, 2)))
    dropoff = rounded(pickup + rng.normal(0, 0.025, (count, 2)))
    positions = dict(zip(COORDINATES, np.column_stack([pickup, dropoff]).T, strict=True))
    cells = {name: _with_long_cells(rng, name, values) for name, values in positions.items()}
    from_x, from_y, to_x, to_y = (column.astype(float) for column in cells.values())
    kilometres = np.sqrt(((to_x - from_x) * KM_PER_DEGREE[0]) ** 2 + ((to_y - from_y) * KM_PER_DEGREE[1]) ** 2)
    fares = rounded(np.maximum(2.5, 2.5 + 1.6 * kilometres + rng.normal(0, 1, count)), 1)
    fares[rng.rand(count) < 0.002] = -2.5
    fares[rng.rand(count) < 0.001] = 49.57  # a flat rate and a toll, wherever the ride went
    _spoil(rng, cells, count)
    return {
        "key": keys,
        "fare_amount": fares,
        "pickup_datetime": join_text(stamps, " UTC"),
        **cells,
        "passenger_count": rng.choice([0, 1, 2, 3, 5, 6, 208], count, p=[0.01, 0.69, 0.15, 0.05, 0.07, 0.02, 0.01]),
    }


def _times(rng: np.random.RandomState, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Seconds from 2009 to mid 2015, and keys that number the rides of one second."""
    seconds = rng.randint(0, 204_900_000, count)
    seconds = np.where(rng.rand(count) < 0.5, seconds // 60 * 60, seconds)
    seconds = np.where(rng.rand(count) < 0.3, rng.choice(seconds, count), seconds)
    order = np.argsort(seconds, kind="stable")
    _, first, sizes = np.unique(seconds[order], return_index=True, return_counts=True)
    number = np.empty(count, dtype=np.int64)
    number[order] = np.arange(count) - np.repeat(first, sizes) + 1
    moments = np.datetime64("2009-01-01T00:00:00") + seconds.astype("timedelta64[s]")
    stamps = np.char.replace(np.datetime_as_string(moments, unit="s"), "T", " ")
    return stamps, join_text(stamps, ".000000", number)


def _with_long_cells(rng: np.random.RandomState, name: str, values: np.ndarray) -> np.ndarray:
    cells = values.astype(object)
    long = rng.rand(len(values)) < 0.05
    cells[long] = rng.choice(LONG_CELLS[name.split("_")[1]], long.sum())
    return cells


def _spoil(rng: np.random.RandomState, cells: dict[str, np.ndarray], count: int) -> None:
    """What goes wrong in a cab: positions are lost (0, 0.0), a few are tiny numbers, a few dropoffs are empty."""
    lost = rng.rand(count) < 0.02
    empty = rng.rand(count) < 0.003
    empty[rng.randint(count)] = True
    for name, column in cells.items():
        column[lost] = rng.choice(["0", "0.0"], lost.sum())
        column[rng.rand(count) < 0.002] = "-7.4e-05" if name.endswith("longitude") else "1e-05"
        if name.startswith("dropoff"):
            column[empty] = None
