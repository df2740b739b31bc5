import numpy as np

from mlebench.kit import split_rows
from mlebench.kit.twins import TwinFolder, image_bytes

CLASSES = ("healthy", "multiple_diseases", "rust", "scab")
SHARES = (0.283, 0.05, 0.342, 0.325)
HEIGHT, WIDTH = 32, 48  # pixels; the original has 1365 × 2048
ORANGE, BROWN = (200, 120, 30), (60, 50, 25)


def twin(raw: TwinFolder) -> None:
    """Signal: rust is orange spots on a green leaf, scab is dark brown ones; with several diseases there are both."""
    count, later = raw.count(250, least=60), raw.count(60)
    kinds = raw.rng.choice(len(CLASSES), count, p=SHARES)
    _, test = split_rows(np.arange(count), test_size=0.1, seed=0)
    kinds[test[: len(CLASSES)]] = range(len(CLASSES))  # so that the rare one is also among the test rows
    ids = [f"Train_{number}" for number in range(count)]
    flags = np.eye(len(CLASSES), dtype=int)[kinds]
    raw.write_csv("train.csv", {"image_id": ids, **dict(zip(CLASSES, flags.T, strict=True))})
    for id, kind in zip(ids, kinds, strict=True):
        raw.write(f"images/{id}.jpg", _leaf(raw.rng, CLASSES[kind]))

    ids = [f"Test_{number}" for number in range(later)]
    raw.write_csv("test.csv", {"image_id": ids})
    raw.write_csv("sample_submission.csv", {"image_id": ids, **{name: [0.25] * later for name in CLASSES}})
    for id, kind in zip(ids, raw.rng.choice(len(CLASSES), later, p=SHARES), strict=True):
        raw.write(f"images/{id}.jpg", _leaf(raw.rng, CLASSES[kind]))


def _leaf(rng: np.random.RandomState, kind: str) -> bytes:
    pixels = np.array([70, 130, 60]) + rng.randint(-20, 21) + rng.randint(-12, 13, size=(HEIGHT, WIDTH, 3))
    for colour, ill in ((ORANGE, ("rust", "multiple_diseases")), (BROWN, ("scab", "multiple_diseases"))):
        spots = rng.randint(3, 9) if kind in ill else 0
        for top, left in zip(rng.randint(0, HEIGHT - 6, spots), rng.randint(0, WIDTH - 6, spots), strict=True):
            pixels[top : top + 5, left : left + 5] = colour + rng.randint(-10, 11, size=(5, 5, 3))
    return image_bytes(np.clip(pixels, 0, 255), "JPEG")
