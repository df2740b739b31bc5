import numpy as np

from mlebench.kit.twins import TwinFolder

SAMPLES = 40  # the original has 60,001 for each segment
SENSORS = [f"sensor_{number}" for number in range(1, 11)]
LONGEST = 49_000_000
TEN_MINUTES = 60_000
MOST_SEGMENTS = 5  # of a recording
ID_STEP = 26_000  # keeps ids apart, and below 2**31 up to size 1000


def twin(raw: TwinFolder) -> None:
    """Signal: the nearer the eruption, the stronger the tremor at every sensor.

    Segments are cut from longer recordings, so the last row of one may be the first row of another.
    """
    count, later = raw.count(60, least=20), raw.count(20)
    ids = raw.rng.permutation(count + later) * ID_STEP + raw.rng.randint(0, ID_STEP, count + later)
    times = np.zeros(count + later, dtype=np.int64)
    places = raw.rng.permutation(count + later)
    while len(places):
        cut, places = np.split(places, [raw.rng.randint(1, MOST_SEGMENTS + 1)])
        time = raw.rng.randint(6_000, LONGEST - TEN_MINUTES * MOST_SEGMENTS)
        times[cut] = time + TEN_MINUTES * np.arange(len(cut))[::-1]
        recording = _recording(raw.rng, 100 + 1500 * (1 - time / LONGEST), rows=len(cut) * (SAMPLES - 1) + 1)
        for number, place in enumerate(cut.tolist()):
            folder, start = "train" if place < count else "test", number * (SAMPLES - 1)
            readings = {sensor: values[start : start + SAMPLES] for sensor, values in recording.items()}
            raw.write_csv(f"{folder}/{ids[place]}.csv", readings)

    raw.write_csv("train.csv", {"segment_id": ids[:count], "time_to_eruption": times[:count]})
    raw.write_csv("sample_submission.csv", {"segment_id": ids[count:], "time_to_eruption": [0] * later})


def _recording(rng: np.random.RandomState, tremor: float, rows: int) -> dict[str, list]:
    readings = np.round(rng.uniform(-tremor, tremor, (len(SENSORS), rows))).tolist()
    gaps = rng.rand(len(SENSORS), rows) < 0.01
    gaps[rng.rand(len(SENSORS)) < 0.08] = True  # a sensor that was silent throughout
    return {
        sensor: [None if gap else value for value, gap in zip(values, missing, strict=True)]
        for sensor, values, missing in zip(SENSORS, readings, gaps.tolist(), strict=True)
    }
