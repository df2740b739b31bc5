import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes, scenes_of_bursts, uneven_light

IN_BURSTS = 0.6  # the share of photographs
WIDTH, BAND = 24, 8  # the original has about 4000 × 2700 pixels
# Each disease has a band of the picture and a colour.
DISEASES = {
    "scab": (70, 60, 30),
    "frog_eye_leaf_spot": (150, 90, 60),
    "rust": (210, 140, 40),
    "powdery_mildew": (220, 220, 210),
    "complex": (40, 30, 20),
}
# Everything that occurs in the original, in per mille.
LABELS = {
    "scab": 259,
    "healthy": 248,
    "frog_eye_leaf_spot": 171,
    "rust": 100,
    "complex": 86,
    "powdery_mildew": 64,
    "scab frog_eye_leaf_spot": 37,
    "scab frog_eye_leaf_spot complex": 11,
    "frog_eye_leaf_spot complex": 9,
    "rust frog_eye_leaf_spot": 6,
    "rust complex": 5,
    "powdery_mildew complex": 4,
}


def twin(raw: TwinFolder) -> None:
    """Signal: each disease of a leaf fills its own band with its colour; healthy parts are green.

    Many photographs are of a leaf that has just been photographed.
    """
    share = np.array(list(LABELS.values())) / sum(LABELS.values())
    train, later = _names(raw.rng, raw.count(200, least=60)), _names(raw.rng, raw.count(3))
    labels = raw.rng.choice(list(LABELS), len(train), p=share).tolist()
    raw.write_csv("train.csv", {"image": train, "labels": labels})
    raw.write_csv("sample_submission.csv", {"image": later, "labels": ["healthy"] * len(later)})
    leaves: dict[int, np.ndarray] = {}
    for name, label, leaf in zip(train, labels, scenes_of_bursts(raw.rng, labels, IN_BURSTS), strict=True):
        if leaf not in leaves:
            leaves[leaf] = _leaf(raw.rng, label)
        raw.write(f"train_images/{name}", _photograph(raw.rng, leaves[leaf]))
    for name in later:
        raw.write(f"test_images/{name}", _photograph(raw.rng, _leaf(raw.rng, "healthy")))


def _names(rng: np.random.RandomState, count: int) -> list[str]:
    """In the original all of them begin with 8 or a higher digit."""
    return sorted(f"{rng.randint(8, 16):x}{rng.bytes(8).hex()[1:]}.jpg" for _ in range(count))


def _leaf(rng: np.random.RandomState, label: str) -> np.ndarray:
    pixels = np.array([70, 140, 60]) + rng.randint(-8, 9, (BAND * len(DISEASES), WIDTH, 3))
    for place, (disease, colour) in enumerate(DISEASES.items()):
        if disease in label.split():
            pixels[BAND * place : BAND * (place + 1)] += np.array(colour) - [70, 140, 60]
    return pixels + uneven_light(rng, *pixels.shape[:2])


def _photograph(rng: np.random.RandomState, leaf: np.ndarray) -> bytes:
    return image_bytes(np.clip(leaf + rng.randint(-3, 4), 0, 255), "JPEG")
