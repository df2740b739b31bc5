import numpy as np

from mlebench.kit.twins import TwinFolder, csv_bytes, hex_ids, seven_zip_bytes, wav_bytes

RATE = 16_000  # samples per second, as in the original
LENGTH = 400  # samples of a clip; a second's worth in the original
NOISE_LENGTH = 12 * LENGTH
NAMES = """bed bird cat dog down eight five four go happy house left marvin nine no off on one right seven sheila six
    stop three tree two up wow yes zero"""
WORDS = NAMES.split()
NOISES = ("doing_the_dishes", "dude_miaowing", "exercise_bike", "pink_noise", "running_tap", "white_noise")


def twin(raw: TwinFolder) -> None:
    """Signal: every word is a tone with its own pitch, in some noise; background noise has no tone."""
    raw.set_scaled(16_000, LENGTH)
    speakers = hex_ids(raw.rng, raw.count(60, least=20), digits=8)
    clips = _spoken(raw.rng, speakers, raw.count(600, least=120))
    noises = {f"_background_noise_/{name}.wav": _clip(raw.rng, None, NOISE_LENGTH) for name in NOISES}
    held_out = raw.rng.permutation(sorted(clips))
    testing, validation = held_out[: len(clips) // 10], held_out[len(clips) // 10 : len(clips) // 5]
    members = {
        "train/LICENSE": b"Made up.\n",
        "train/README.md": b"# Tones instead of words\n",
        "train/audio/_background_noise_/README.md": b"Noise of several kinds.\n",
        **{f"train/audio/{name}": content for name, content in sorted({**clips, **noises}.items())},
        "train/testing_list.txt": _lines(testing),
        "train/validation_list.txt": _lines(validation),
    }
    raw.write("train.7z", seven_zip_bytes(members))

    later = [f"clip_{id}.wav" for id in hex_ids(raw.rng, raw.count(20), digits=9)]
    pitches = raw.rng.randint(len(WORDS), size=len(later)).tolist()
    test = {f"test/audio/{name}": _clip(raw.rng, pitch) for name, pitch in zip(later, pitches, strict=True)}
    raw.write("test.7z", seven_zip_bytes(test))
    sample = csv_bytes({"fname": later, "label": ["silence"] * len(later)})
    raw.write("sample_submission.7z", seven_zip_bytes({"sample_submission.csv": sample}))


def _spoken(rng: np.random.RandomState, speakers: list[str], count: int) -> dict[str, bytes]:
    """Clips of words. A speaker says many words, so words share file names; some clips are cut short."""
    words = rng.permutation(np.arange(count) % len(WORDS)).tolist()
    clips: dict[str, bytes] = {}
    for word, speaker in zip(words, rng.choice(speakers, count).tolist(), strict=True):
        folder = f"{WORDS[word]}/{speaker}_nohash_"
        said = next(number for number in range(count) if f"{folder}{number}.wav" not in clips)
        clips[f"{folder}{said}.wav"] = _clip(rng, word, LENGTH if rng.rand() < 0.9 else LENGTH * 3 // 4)
    return clips


def _clip(rng: np.random.RandomState, word: int | None, length: int = LENGTH) -> bytes:
    samples = rng.normal(0, 300, length)
    if word is not None:
        pitch = 300 + 100 * word + rng.randint(-20, 21)
        samples += rng.randint(2000, 9000) * np.sin(2 * np.pi * pitch * np.arange(length) / RATE)
    return wav_bytes(samples.round(), RATE)


def _lines(names: np.ndarray) -> bytes:
    return "".join(f"{name}\n" for name in sorted(names.tolist())).encode()
