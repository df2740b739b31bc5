from collections.abc import Iterable

import numpy as np

from mlebench.kit.twins import (
    TwinFolder,
    image_bytes,
    mat_bytes,
    mp4_bytes,
    seven_zip_bytes,
    tar_gz_bytes,
    wav_bytes,
    zip_bytes,
)

GESTURES = """vattene vieniqui perfetto furbo cheduepalle chevuoi daccordo seipazzo combinato freganiente ok cosatifarei
    basta prendere noncenepiu fame tantotempo buonissimo messidaccordo sonostufo"""
NAMES = GESTURES.split()  # gesture 1 is the first
RATE = 16_000  # samples per second, as in the original
LENGTH = 32  # samples of a gesture; more than a second's worth in the original
MOST_SAMPLES = 400  # in an archive: ids have four digits. In a larger twin gestures take longer instead.
SIDE = 8  # pixels of a picture; 640 by 480 in the original


def twin(raw: TwinFolder) -> None:
    """Signal: every gesture is a tone with its own pitch in the sound, one after another."""
    wanted = raw.count(10, least=4)
    each = min(wanted, MOST_SAMPLES)
    length = LENGTH * (wanted // each)
    ids = iter(np.cumsum(raw.rng.randint(1, 4, 10 * each)).tolist())  # with gaps
    labels: dict[str, list[int]] = {}
    for part in (1, 2, 3, 4):
        sequences = {next(ids): _sequence(raw.rng) for _ in range(each)}
        labels |= {f"{id:04}": sequence for id, sequence in sequences.items()}
        raw.write(f"training{part}.tar.gz", _samples(raw.rng, sequences, length, labelled=True))
    for part in (1, 2, 3):
        sequences = {next(ids): _sequence(raw.rng) for _ in range(each // 2)}
        raw.write(f"validation{part}.tar.gz", _samples(raw.rng, sequences, length, labelled=False))

    raw.write_csv("training.csv", {"Id": list(labels), "Sequence": [_text(labels[id]) for id in labels]})
    later = [f"{next(ids):04}" for _ in range(each)]
    guesses = [_text(1 + raw.rng.permutation(len(NAMES))) for _ in later]
    raw.write_csv("test.csv", {"Id": later})
    raw.write_csv("randomPredictions.csv", {"Id": later, "Sequence": guesses})
    batch = {f"devel01/K_{number}.bin": raw.rng.bytes(40) for number in range(1, 4)}
    raw.write("devel01-40.7z", seven_zip_bytes(batch))
    raw.write("valid_all_files_combined.7z", seven_zip_bytes({"valid01/K_1.bin": raw.rng.bytes(40)}))
    raw.write_zip("sample_code_mmrgc.zip", {"sample_code/readme.txt": b"Made up.\n"})


def _sequence(rng: np.random.RandomState) -> list[int]:
    return (1 + rng.permutation(len(NAMES)))[: rng.randint(8, len(NAMES) + 1)].tolist()


def _text(sequence: Iterable[int]) -> str:
    return " ".join(map(str, sequence))


def _samples(rng: np.random.RandomState, sequences: dict[int, list[int]], length: int, *, labelled: bool) -> bytes:
    """An archive with a zip for each sample: three videos, the sound, and what is known about it."""
    samples = {}
    for id, sequence in sequences.items():
        name = f"Sample{id:05}"
        files = {f"{name}_{kind}.mp4": _video(rng) for kind in ("color", "depth", "user")}
        files[f"{name}_audio.wav"] = _sound(rng, sequence, length)
        files[f"{name}_data.mat"] = mat_bytes({"Video": _facts(sequence, labelled=labelled)})
        samples[f"{name}.zip"] = zip_bytes(files)
    return tar_gz_bytes(samples)


def _video(rng: np.random.RandomState) -> bytes:
    return mp4_bytes([image_bytes(rng.randint(0, 256, (SIDE, SIDE)), "JPEG")], width=SIDE, height=SIDE)


def _sound(rng: np.random.RandomState, sequence: list[int], length: int) -> bytes:
    pitches = 500 + 300 * np.repeat(sequence, length)  # cycles per second
    samples = 5_000 * np.sin(2 * np.pi * pitches * np.arange(len(pitches)) / RATE) + rng.normal(0, 300, len(pitches))
    return wav_bytes(samples.round(), RATE)


def _facts(sequence: list[int], *, labelled: bool) -> dict:
    facts: dict = {"NumFrames": 20 * len(sequence), "FrameRate": 20, "MaxDepth": 3_975}
    if labelled:
        facts["Labels"] = [
            {"Name": NAMES[gesture - 1], "Begin": 20 * place + 1, "End": 20 * (place + 1)}
            for place, gesture in enumerate(sequence)
        ]
    return facts
