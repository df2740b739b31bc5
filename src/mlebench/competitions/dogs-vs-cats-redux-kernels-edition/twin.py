import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes

SIDES = (8, 17)  # pixels, from and up to: photographs of all shapes; the original's have some hundreds
COATS = {"cat": (110, 110, 120), "dog": (170, 130, 80)}


def twin(raw: TwinFolder) -> None:
    """Signal: dogs are sandy and cats grey, with a quarter of either in a coat halfway between."""
    each = raw.count(100, least=40)
    # Names sort as text: cat.0, cat.1, cat.10, cat.11 ...
    names = [(kind, number) for kind in COATS for number in range(each)]
    raw.write_zip("train.zip", {f"train/{kind}.{number}.jpg": _photo(raw.rng, kind) for kind, number in names})

    later = range(1, raw.count(50) + 1)
    kinds = raw.rng.choice(list(COATS), len(later)).tolist()
    raw.write_zip("test.zip", {f"test/{id}.jpg": _photo(raw.rng, kind) for id, kind in zip(later, kinds, strict=True)})
    raw.write_csv("sample_submission.csv", {"id": later, "label": [0.5] * len(later)})


def _photo(rng: np.random.RandomState, kind: str) -> bytes:
    coat = np.mean(list(COATS.values()), axis=0) if rng.rand() < 0.25 else np.array(COATS[kind])
    light = rng.randint(-30, 31)
    pixels = coat + light + rng.randint(-40, 41, (*rng.randint(*SIDES, 2), 3))
    return image_bytes(np.clip(pixels, 0, 255), "JPEG")
