import numpy as np

from mlebench.kit.twins import TwinFolder, hex_ids, image_bytes

SIDES = (8, 15)  # pixels, from and up to: pictures of many shapes; the original's have up to some thousands
OFTEN_SEEN = ("new_whale", "w_1287fbc", "w_98baff9", "w_7554f44", "w_1eafe46")
NEW_WHALE_COLOURS = (40, 216)


def twin(raw: TwinFolder) -> None:
    """Signal: each whale's fluke has its own shade; whales named new_whale have any."""
    count = raw.count(240, least=120)
    # Half of all whales have one image, as in the original, and few have many.
    others = [f"w_{digits}" for digits in hex_ids(raw.rng, count // 2, 7)]
    whales = np.array([*OFTEN_SEEN, *others])
    often = raw.rng.choice(OFTEN_SEEN, count // 4, p=[0.6, 0.1, 0.1, 0.1, 0.1])
    ids = np.concatenate([often, others, raw.rng.choice(others[: len(others) // 2], count - len(often) - len(others))])
    ids = ids[raw.rng.permutation(count)]
    shades = dict(zip(whales.tolist(), raw.rng.randint(*NEW_WHALE_COLOURS, (len(whales), 3)), strict=True))

    images = [f"{digits}.jpg" for digits in sorted(hex_ids(raw.rng, count, 8))]
    raw.write_csv("train.csv", {"Image": images, "Id": ids})
    for image, whale in zip(images, ids.tolist(), strict=True):
        raw.write(f"train/{image}", _fluke(raw.rng, shades[whale] if whale != "new_whale" else None))

    later = [f"{digits}.jpg" for digits in sorted(hex_ids(raw.rng, raw.count(40), 8))]
    for image in later:
        raw.write(f"test/{image}", _fluke(raw.rng, None))
    raw.write_csv("sample_submission.csv", {"Image": later, "Id": [" ".join(OFTEN_SEEN)] * len(later)})


def _fluke(rng: np.random.RandomState, shade: np.ndarray | None) -> bytes:
    """A picture; some are grey, with one value for each pixel."""
    colour = rng.randint(*NEW_WHALE_COLOURS, 3) if shade is None else shade
    pixels = colour + rng.randint(-30, 31, (*rng.randint(*SIDES, 2), 3))
    return image_bytes(pixels.mean(axis=2) if rng.rand() < 0.3 else pixels, "JPEG")
