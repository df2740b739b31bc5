import numpy as np

from mlebench.kit.twins import TwinFolder, image_bytes

# How many pictures a twin of size 1 has of each species, in the original's proportions.
SPECIES = {
    "Black-grass": 10,
    "Charlock": 14,
    "Cleavers": 10,
    "Common Chickweed": 22,
    "Common wheat": 8,
    "Fat Hen": 17,
    "Loose Silky-bent": 23,
    "Maize": 8,
    "Scentless Mayweed": 18,
    "Shepherds Purse": 8,
    "Small-flowered Cranesbill": 18,
    "Sugar beet": 14,
}
LEAST_SIDE, MOST_SIDE = 10, 24  # pixels; the original's pictures are also squares of many sizes, but far larger


def twin(raw: TwinFolder) -> None:
    """Signal: every species has its own shade of green, in the middle of a brown picture."""
    greens = np.column_stack(
        [
            np.linspace(20, 130, len(SPECIES)),
            [230, 120, 180] * 4,
            raw.rng.permutation(np.linspace(0, 110, len(SPECIES))),
        ]
    )
    for (species, count), green in zip(SPECIES.items(), greens, strict=True):
        for name in _names(raw.rng, raw.count(count)):
            raw.write(f"train/{species}/{name}", _picture(raw.rng, green))

    later = _names(raw.rng, raw.count(24))
    for name in later:
        raw.write(f"test/{name}", _picture(raw.rng, greens[raw.rng.randint(len(greens))]))
    raw.write_csv("sample_submission.csv", {"file": later, "species": ["Sugar beet"] * len(later)})


def _names(rng: np.random.RandomState, count: int) -> list[str]:
    return sorted(f"{rng.bytes(5).hex()[1:]}.png" for _ in range(count))


def _picture(rng: np.random.RandomState, green: np.ndarray) -> bytes:
    side = rng.randint(LEAST_SIDE, MOST_SIDE)
    pixels = np.array([110, 85, 70]) + rng.randint(-20, 21, (side, side, 3))
    plant = slice(side // 4, 3 * side // 4)
    pixels[plant, plant] = green + rng.randint(-8, 9, (*pixels[plant, plant].shape[:2], 1))
    return image_bytes(np.clip(pixels, 0, 255), "PNG")
