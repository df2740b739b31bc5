import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes

SIDE = 16  # pixels; the original has 512
STRENGTHS = {"JMiPOD": 12, "JUNIWARD": 20, "UERD": 30}  # how much a hidden message changes a pixel


def twin(raw: TwinFolder) -> None:
    """Signal: covers are smooth; a hidden message brightens every other pixel, by how much depends on the algorithm."""
    count = raw.count(80, least=40)
    raw.set_scaled(5000, max(12, count // 5))
    for number in range(1, count + 1):
        cover = _cover(raw.rng)
        _write(raw, f"Cover/{number:05d}.jpg", cover)
        for algorithm, strength in STRENGTHS.items():
            _write(raw, f"{algorithm}/{number:05d}.jpg", cover + strength * _message(raw.rng))

    later = [f"{number:04d}.jpg" for number in range(1, raw.count(20) + 1)]
    for name in later:
        _write(raw, f"Test/{name}", _cover(raw.rng) + 20 * raw.rng.randint(2) * _message(raw.rng))
    raw.write_csv("sample_submission.csv", {"Id": later, "Label": [0] * len(later)})


def _cover(rng: np.random.RandomState) -> np.ndarray:
    """A slope of light in two directions, with a grain that looks a little like a message."""
    place = np.arange(SIDE)
    light = rng.randint(60, 120) + rng.randint(1, 4) * place[:, None] + rng.randint(1, 4) * place
    return light[:, :, None] + rng.randint(-20, 21, 3) + rng.randint(-6, 7, (SIDE, SIDE, 3))


def _message(rng: np.random.RandomState) -> np.ndarray:
    bits = np.indices((SIDE, SIDE)).sum(axis=0) % 2
    return (bits & (rng.rand(SIDE, SIDE) < 0.8))[:, :, None]


def _write(raw: TwinFolder, name: str, pixels: np.ndarray) -> None:
    raw.write(name, image_bytes(np.clip(pixels, 0, 255), "JPEG"))
