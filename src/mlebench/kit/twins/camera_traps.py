"""Twins of collections of camera traps: made-up frames of wild animals."""

from collections.abc import Sequence

import numpy as np

from mlebench.engine.tables import join_text
from mlebench.kit.twins.formats import hex_ids
from mlebench.kit.twins.media import image_bytes

SIDE = 12  # pixels; real frames have thousands
ANIMAL = 7  # pixels a side
SECONDS = (1_270_000_000, 1_480_000_000)  # 2010 to 2016


def camera_trap_frames(
    rng: np.random.RandomState, count: int, *, cameras: np.ndarray, species: Sequence[int], id_tail: str
) -> dict[str, np.ndarray]:
    """Facts about frames, in no order: bursts of one to three have one camera, one time and one category.

    A category is one of the species or, for a third of the bursts, 0. Ids are eight random digits and a tail.
    """
    burst = np.repeat(np.arange(count), rng.randint(1, 4, count))[:count]
    lengths = np.bincount(burst, minlength=count)
    moments = np.datetime64(0, "s") + rng.randint(*SECONDS, count).astype("timedelta64[s]")
    facts = {
        "id": join_text(np.array(hex_ids(rng, count, 8)), id_tail),
        "burst": join_text(np.array(hex_ids(rng, count, 8)), id_tail)[burst],
        "burst_length": lengths[burst],
        "place_in_burst": np.arange(count) - (np.cumsum(lengths) - lengths)[burst],
        "camera": rng.choice(cameras, count)[burst],
        "time": np.char.replace(np.datetime_as_string(moments), "T", " ")[burst],
        "category": np.where(rng.rand(count) < 1 / 3, 0, rng.choice(species, count))[burst],
    }
    order = rng.permutation(count)
    return {name: values[order] for name, values in facts.items()}


def camera_trap_picture(rng: np.random.RandomState, camera: int, category: int) -> bytes:
    """A JPEG file: the ground of the camera and, unless the category is 0, a patch in the colour of its species."""
    pixels = np.full((SIDE, SIDE, 3), 60 + camera * 37 % 90) + rng.randint(-15, 16, (SIDE, SIDE, 3))
    if category:
        left, top = rng.randint(0, SIDE - ANIMAL, 2)
        colour = [category * 53 % 100, category * 31 % 100, category * 7 % 100]
        pixels[top : top + ANIMAL, left : left + ANIMAL] += np.array(colour)
    return image_bytes(pixels, "JPEG")
