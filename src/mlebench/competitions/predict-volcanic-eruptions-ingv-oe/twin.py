import numpy as np

from mlebench.kit.twins import TwinFolder

SAMPLES = 40  # the original has 60,001 for each segment
SENSORS = [f"sensor_{number}" for number in range(1, 11)]
LONGEST = 49_000_000
ID_STEP = 26_000  # keeps ids apart, and below 2**31 up to size 1000


def twin(raw: TwinFolder) -> None:
    """Signal: the nearer the eruption, the stronger the tremor at every sensor."""
    count, later = raw.count(60, least=20), raw.count(20)
    ids = raw.rng.permutation(count + later) * ID_STEP + raw.rng.randint(0, ID_STEP, count + later)
    times = raw.rng.randint(6_000, LONGEST, count + later)
    for place, (id, time) in enumerate(zip(ids.tolist(), times.tolist(), strict=True)):
        folder = "train" if place < count else "test"
        raw.write_csv(f"{folder}/{id}.csv", _segment(raw.rng, 100 + 1500 * (1 - time / LONGEST)))

    raw.write_csv("train.csv", {"segment_id": ids[:count], "time_to_eruption": times[:count]})
    raw.write_csv("sample_submission.csv", {"segment_id": ids[count:], "time_to_eruption": [0] * later})


def _segment(rng: np.random.RandomState, tremor: float) -> dict[str, list]:
    readings = np.round(rng.uniform(-tremor, tremor, (len(SENSORS), SAMPLES))).tolist()
    gaps = rng.rand(len(SENSORS), SAMPLES) < 0.01
    gaps[rng.rand(len(SENSORS)) < 0.08] = True  # a sensor that was silent throughout
    return {
        sensor: [None if gap else value for value, gap in zip(values, missing, strict=True)]
        for sensor, values, missing in zip(SENSORS, readings, gaps.tolist(), strict=True)
    }
