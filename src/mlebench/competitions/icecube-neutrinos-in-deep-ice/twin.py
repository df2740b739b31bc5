import numpy as np

from mlebench.kit.twins import TwinFolder, parquet_bytes, rounded

SENSORS = np.array([10, 8, 60])  # a grid: strings in rows and columns, and the sensors on each of them
SPACING = np.array([120.0, 125.0, -17.0])  # metres; sensors are numbered from the top down
METRES_PER_NS = 0.299792
MOST_BATCHES = 660  # as in the original


def twin(raw: TwinFolder) -> None:
    """Signal: pulses that are not auxiliary run along a line as time goes by, away from (azimuth, zenith)."""
    place = np.array(np.unravel_index(np.arange(SENSORS.prod()), SENSORS)).T
    metres = rounded((place - (SENSORS - 1) / 2) * SPACING, 2)
    raw.write_csv(
        "sensor_geometry.csv", {"sensor_id": np.arange(len(place)), **dict(zip("xyz", metres.T, strict=True))}
    )

    batches, events = min(raw.count(12, least=4), MOST_BATCHES), raw.count(600, least=80)
    meta = _events(raw, "train", np.sort(np.arange(events) % batches) + 1)
    raw.write("train_meta.parquet", parquet_bytes(meta))

    later = _events(raw, "test", np.full(3, batches + 1))  # no more than three, as in the original
    sample = {"event_id": later["event_id"], "azimuth": np.ones(3), "zenith": np.ones(3)}
    raw.write("sample_submission.parquet", parquet_bytes(sample))
    raw.write("test_meta.parquet", parquet_bytes({name: later[name] for name in list(later)[:4]}))


def _events(raw: TwinFolder, folder: str, batch: np.ndarray) -> dict[str, np.ndarray]:
    """Write the pulses of the events in these batches; returns what is known about each event."""
    ids = 24 + 10_000_000 * (folder == "test") + np.cumsum(raw.rng.randint(1, 40, len(batch)))
    azimuth = rounded(raw.rng.uniform(0, 2 * np.pi, len(batch)))
    azimuth[raw.rng.rand(len(batch)) < 0.02] = 2.5e-05
    zenith = rounded(np.arccos(raw.rng.uniform(-1, 1, len(batch))))
    counts = raw.rng.randint(6, 20, len(batch))
    pulses = _pulses(raw.rng, azimuth, zenith, np.repeat(np.arange(len(batch)), counts))
    pulses["event_id"] = np.repeat(ids, counts)

    ends = np.cumsum(counts)
    first = np.searchsorted(batch, batch)  # the first event of each event's batch
    before = (ends - counts)[first]  # pulses in earlier batches
    for number in np.unique(batch):
        some = slice(before[batch == number][0], ends[batch == number][-1])
        content = parquet_bytes({name: values[some] for name, values in pulses.items()})
        raw.write(f"{folder}/batch_{number}.parquet", content)
    return {
        "batch_id": batch,
        "event_id": ids,
        "first_pulse_index": ends - counts - before,
        "last_pulse_index": ends - before - 1,
        "azimuth": azimuth,
        "zenith": zenith,
    }


def _pulses(
    rng: np.random.RandomState, azimuth: np.ndarray, zenith: np.ndarray, event: np.ndarray
) -> dict[str, np.ndarray]:
    """For each pulse of an event, the sensor nearest to the particle at that time, or any sensor."""
    towards = np.column_stack([np.sin(zenith) * np.cos(azimuth), np.sin(zenith) * np.sin(azimuth), np.cos(zenith)])
    middle = rng.uniform(-100, 100, (len(azimuth), 3))
    noise = rng.rand(len(event)) < 0.3
    time = np.sort(rng.randint(-1500, 1500, len(event)) + 10_000 * event) - 10_000 * event  # in order in each event
    metres = middle[event] - METRES_PER_NS * time[:, None] * towards[event]
    near = np.clip(np.round(metres / SPACING + (SENSORS - 1) / 2), 0, SENSORS - 1).astype(np.int64)
    sensor = np.where(noise, rng.randint(SENSORS.prod(), size=len(event)), np.ravel_multi_index(near.T, SENSORS))
    return {
        "sensor_id": sensor.astype(np.int16),
        "time": time + 10_000,
        "charge": rounded(rng.randint(5, 80, len(event)) * 0.025, 3),
        "auxiliary": noise,
    }
