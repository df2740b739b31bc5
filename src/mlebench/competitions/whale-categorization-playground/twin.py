import numpy as np

from mlebench.kit.twins import TwinFolder, hex_ids, image_bytes, scenes_of_bursts, uneven_light

SIDES = (16, 31)  # pixels, from and up to: pictures of many shapes; the original's have up to some thousands
OFTEN_SEEN = ("new_whale", "w_1287fbc", "w_98baff9", "w_7554f44", "w_1eafe46")
IN_BURSTS = 0.6  # the share of pictures
NEW_WHALE_COLOURS = (40, 216)


def twin(raw: TwinFolder) -> None:
    """Signal: each whale's fluke has its own shade; whales named new_whale have any. Many pictures are of one dive."""
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
    dives: dict[int, np.ndarray] = {}
    for image, whale, dive in zip(images, ids.tolist(), scenes_of_bursts(raw.rng, ids, IN_BURSTS), strict=True):
        if dive not in dives:
            dives[dive] = _fluke(raw.rng, shades[whale] if whale != "new_whale" else None)
        raw.write(f"train/{image}", _picture(raw.rng, dives[dive]))

    later = [f"{digits}.jpg" for digits in sorted(hex_ids(raw.rng, raw.count(40), 8))]
    for image in later:
        raw.write(f"test/{image}", _picture(raw.rng, _fluke(raw.rng, None)))
    raw.write_csv("sample_submission.csv", {"Image": later, "Id": [" ".join(OFTEN_SEEN)] * len(later)})


def _fluke(rng: np.random.RandomState, shade: np.ndarray | None) -> np.ndarray:
    """What is seen of a dive; some are grey, with one value for each pixel."""
    colour = rng.randint(*NEW_WHALE_COLOURS, 3) if shade is None else shade
    height, width = rng.randint(*SIDES, 2)
    pixels = colour + rng.randint(-4, 5, (height, width, 3)) + uneven_light(rng, height, width)
    return pixels.mean(axis=2) if rng.rand() < 0.3 else pixels


def _picture(rng: np.random.RandomState, fluke: np.ndarray) -> bytes:
    return image_bytes(fluke + rng.randint(-3, 4), "JPEG")
