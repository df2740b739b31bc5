import numpy as np

from mlebench.kit.twins import TwinFolder, npy_bytes

SHAPE = (6, 16, 12)  # scans, steps in time, frequencies; the original has (6, 273, 256)
ON_TARGET = (0, 2, 4)
ID_DIGITS = 15
DIGITS_ONLY = str.maketrans("abcdef", "012345")


def twin(raw: TwinFolder) -> None:
    """Signal: a bright drifting line in the scans on target (first, third, fifth); in all six it is interference."""
    ids, targets = _snippets(raw, "train", raw.count(160, least=120))
    raw.write_csv("train_labels.csv", {"id": ids, "target": targets})
    later, _ = _snippets(raw, "test", raw.count(24))
    raw.write_csv("sample_submission.csv", {"id": later, "target": [0.5] * len(later)})

    for part, count in (("train", 16), ("test", 8)):
        ids, targets = _snippets(raw, f"old_leaky_data/{part}_old", raw.count(count))
        raw.write_csv(f"old_leaky_data/{part}_labels_old.csv", {"id": ids, "target": targets})


def _snippets(raw: TwinFolder, folder: str, count: int) -> tuple[list[str], np.ndarray]:
    digits = raw.rng.bytes(count * (ID_DIGITS + 1) // 2).hex()
    ids = sorted(digits[start : start + ID_DIGITS] for start in range(0, count * ID_DIGITS, ID_DIGITS))
    ids[0] = f"0{ids[0][1:].translate(DIGITS_ONLY)}"  # by itself it would be read as a number
    targets = (raw.rng.rand(count) < 0.4).astype(int)
    for id, target in zip(ids, targets, strict=True):
        raw.write(f"{folder}/{id[0]}/{id}.npy", npy_bytes(_snippet(raw.rng, bool(target))))
    return ids, targets


def _snippet(rng: np.random.RandomState, signal: bool) -> np.ndarray:
    power = rng.randint(-16, 17, SHAPE) / 16  # sixteenths are exact in half precision
    scans = ON_TARGET if signal else range(SHAPE[0]) if rng.rand() < 0.4 else ()
    steps = np.arange(SHAPE[1])
    line = (rng.randint(SHAPE[2]) + rng.choice([-1, 1]) * (steps // rng.randint(2, 6))) % SHAPE[2]
    for scan in scans:
        power[scan, steps, line] += 3
    return power.astype(np.float16)
