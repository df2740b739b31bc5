import numpy as np

from mlebench.kit.twins import TwinFolder, npy_bytes, rounded

PHONES = 39
COEFFICIENTS = 39  # that describe a frame
AROUND = 5  # frames before and after, which each row holds too
UTTERANCE = 20  # frames
FOLDER = "timit_11/timit_11"


def twin(raw: TwinFolder) -> None:
    """Signal: every phone has its own mean in each coefficient, and lasts for some frames."""
    means = raw.rng.normal(0, 1.5, (PHONES, COEFFICIENTS))
    frames, phones = _frames(raw.rng, means, raw.count(600, least=100))
    raw.write(f"{FOLDER}/train_11.npy", npy_bytes(frames))
    raw.write(f"{FOLDER}/train_label_11.npy", npy_bytes(phones.astype("<U2")))  # labels are text, as in the original

    later, _ = _frames(raw.rng, means, raw.count(220, least=37))
    raw.write(f"{FOLDER}/test_11.npy", npy_bytes(later))
    raw.write_csv("sampleSubmission.csv", {"Id": np.arange(len(later)), "ClassId": [0] * len(later)})


def _frames(rng: np.random.RandomState, means: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a frame and those around it, and the phones. At the ends of an utterance its last frame repeats."""
    phones = np.repeat(rng.randint(0, PHONES, count), rng.randint(1, 13, count))[:count]
    frames = rounded(means[phones] + rng.normal(0, 1, (count, COEFFICIENTS)), 3).astype(np.float32)
    first = np.arange(count)[:, None] // UTTERANCE * UTTERANCE
    last = np.minimum(first + UTTERANCE, count) - 1
    around = np.clip(np.arange(count)[:, None] + np.arange(-AROUND, AROUND + 1), first, last)
    return frames[around].reshape(count, -1), phones
