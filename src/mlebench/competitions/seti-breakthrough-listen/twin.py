import numpy as np

from mlebench.kit import split_rows
from mlebench.kit.twins import TwinFolder, npy_bytes

SHAPE = (6, 16, 12)  # scans, steps in time, frequencies; the original has (6, 273, 256)
ON_TARGET = (0, 2, 4)
ID_DIGITS = 15
DIGITS_ONLY = str.maketrans("abcdef", "012345")


def twin(raw: TwinFolder) -> None:
    """Signal: a bright drifting line in the scans on target (first, third, fifth); in all six it is interference.

    Most test recordings of the reference's split were in the training set of the earlier edition.
    """
    snippets = _draw(raw.rng, raw.count(160, least=120))
    ids = _write(raw, "train", snippets)
    raw.write_csv("train_labels.csv", {"id": ids, "target": [target for target, _ in snippets]})
    later = _write(raw, "test", _draw(raw.rng, raw.count(24)))
    raw.write_csv("sample_submission.csv", {"id": later, "target": [0.5] * len(later)})

    _, tested = split_rows(snippets, test_size=0.1, seed=0)
    for part, count, again in (("train", 16, tested[: raw.count(14)]), ("test", 8, [])):
        old = [*again, *_draw(raw.rng, raw.count(count))[len(again) :]]
        ids = _write(raw, f"old_leaky_data/{part}_old", old)
        raw.write_csv(f"old_leaky_data/{part}_labels_old.csv", {"id": ids, "target": [target for target, _ in old]})


def _draw(rng: np.random.RandomState, count: int) -> list[tuple[int, bytes]]:
    """Recordings, each with its label."""
    targets = (rng.rand(count) < 0.4).astype(int).tolist()
    return [(target, npy_bytes(_snippet(rng, bool(target)))) for target in targets]


def _write(raw: TwinFolder, folder: str, snippets: list[tuple[int, bytes]]) -> list[str]:
    """Write recordings; returns their ids."""
    count = len(snippets)
    digits = raw.rng.bytes(count * (ID_DIGITS + 1) // 2).hex()
    ids = sorted(digits[start : start + ID_DIGITS] for start in range(0, count * ID_DIGITS, ID_DIGITS))
    ids[0] = f"0{ids[0][1:].translate(DIGITS_ONLY)}"  # by itself it would be read as a number
    for id, (_, content) in zip(ids, snippets, strict=True):
        raw.write(f"{folder}/{id[0]}/{id}.npy", content)
    return ids


def _snippet(rng: np.random.RandomState, signal: bool) -> np.ndarray:
    power = rng.randint(-16, 17, SHAPE) / 16  # sixteenths are exact in half precision
    scans = ON_TARGET if signal else range(SHAPE[0]) if rng.rand() < 0.4 else ()
    steps = np.arange(SHAPE[1])
    line = (rng.randint(SHAPE[2]) + rng.choice([-1, 1]) * (steps // rng.randint(2, 6))) % SHAPE[2]
    for scan in scans:
        power[scan, steps, line] += 3
    return power.astype(np.float16)
