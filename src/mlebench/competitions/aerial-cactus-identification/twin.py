import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes, random_hex

SIDE = 32  # pixels, as in the original


def twin(raw: TwinFolder) -> None:
    """Signal: a cactus is a green upright bar on sandy ground; some of the ground without one has a dry, brown bar."""
    train, later = _names(raw.rng, raw.count(240, least=60)), _names(raw.rng, raw.count(60))
    has_cactus = (raw.rng.rand(len(train)) < 0.75).astype(int).tolist()
    raw.write_csv("train.csv", {"id": train, "has_cactus": has_cactus})
    raw.write_csv("sample_submission.csv", {"id": later, "has_cactus": [0.5] * len(later)})
    raw.write_zip(
        "train.zip",
        {f"train/{id}": _picture(raw.rng, bool(cactus)) for id, cactus in zip(train, has_cactus, strict=True)},
    )
    raw.write_zip("test.zip", {f"test/{id}": _picture(raw.rng, raw.rng.rand() < 0.75) for id in later})


def _names(rng: np.random.RandomState, count: int) -> list[str]:
    return [f"{name}.jpg" for name in sorted(random_hex(rng, count, digits=32))]


def _picture(rng: np.random.RandomState, cactus: bool) -> bytes:
    sand = np.array([150, 130, 110]) + rng.randint(-25, 25)
    pixels = sand + rng.randint(-20, 21, size=(SIDE, SIDE, 3))
    if cactus or rng.rand() < 0.5:
        left, top = rng.randint(2, SIDE - 6), rng.randint(0, 10)
        colour = [80, 140, 90] if cactus else [110, 90, 70]
        pixels[top : top + 20, left : left + 4] = colour + rng.randint(-15, 16, size=(20, 4, 3))
    return image_bytes(np.clip(pixels, 0, 255), "JPEG")
