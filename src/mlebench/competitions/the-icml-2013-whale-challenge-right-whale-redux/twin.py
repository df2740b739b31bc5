import numpy as np

from mlebench.kit.twins import TwinFolder, aiff_bytes

RATE = 2_000  # samples per second, as in the original
LENGTH = 200  # samples of a clip; two seconds' worth in the original
TRAIN_DATES = ("20090328", "20090329", "20090330", "20090331")
TEST_DATES = ("20090401", "20090402", "20090403")
STREAM_SECONDS = 900  # recordings are cut into streams of a quarter of an hour, and these into clips


def twin(raw: TwinFolder) -> None:
    """Signal: a right whale's call is a tone that rises through the clip; elsewhere there is noise or a steady tone."""
    clips = {}
    starts = _starts(raw.rng, TRAIN_DATES, raw.count(70, least=30))
    for number, start in enumerate(starts):
        is_call = number % 30 == 3 or raw.rng.rand() < 0.25  # some calls on every day
        clips[f"train2/{start}_TRAIN{number}_{int(is_call)}.aif"] = _clip(raw.rng, is_call=is_call)
    raw.write_zip("train2.zip", {name: clips[name] for name in raw.rng.permutation(list(clips)).tolist()})

    later = [f"{start}_Test{number}.aif" for number, start in enumerate(_starts(raw.rng, TEST_DATES, raw.count(20)))]
    raw.write_zip("test2.zip", {f"test2/{name}": _clip(raw.rng, is_call=raw.rng.rand() < 0.25) for name in later})
    raw.write_csv("sampleSubmission.csv", {"clip": later, "probability": [0] * len(later)})


def _starts(rng: np.random.RandomState, dates: tuple[str, ...], each: int) -> list[str]:
    """When clips begin, as in their names: the date, the stream, and seconds and milliseconds into the stream."""
    starts = []
    for date in dates:
        seconds = np.sort(rng.choice(24 * 3600, each, replace=False))
        for second, milliseconds in zip(seconds.tolist(), rng.randint(0, 10, each).tolist(), strict=True):
            stream, within = divmod(second, STREAM_SECONDS)
            hour, quarter = divmod(stream, 4)
            starts.append(f"{date}_{hour:02}{quarter * 15:02}00_{within:03}s{milliseconds}ms")
    return starts


def _clip(rng: np.random.RandomState, *, is_call: bool) -> bytes:
    samples = rng.normal(0, 200, LENGTH)
    if is_call or rng.rand() < 0.5:
        time = np.arange(LENGTH) / RATE
        pitch = rng.uniform(60, 120)  # cycles per second
        rise = 1_200 if is_call else 0  # cycles per second, each second
        samples += rng.uniform(300, 900) * np.sin(2 * np.pi * (pitch + rise * time / 2) * time)
    return aiff_bytes(samples.round(), RATE)
