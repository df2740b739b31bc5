"""Bursts: pictures of one scene, taken moments apart, which `picture_hash` does not tell apart."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

STEP = 8  # between neighbouring blocks; JPEG, noise and a brighter picture leave its sign


def scenes_of_bursts(rng: np.random.RandomState, labels: Iterable[Hashable], share: float) -> list[int]:
    """The scene of each picture: for this share of those whose label occurred before, that of the last of these."""
    scenes: list[int] = []
    last: dict[Any, int] = {}
    for label in labels:
        if label not in last or rng.rand() >= share:
            last[label] = max(scenes, default=-1) + 1
        scenes.append(last[label])
    return scenes


def uneven_light(rng: np.random.RandomState, height: int, width: int) -> np.ndarray:
    """How much brighter or darker each pixel of a scene is (height, width, 1): 0 on average, different in each scene.

    Each of the 8 × 9 blocks that `picture_hash` compares is clearly brighter or darker than the next one.
    """
    levels = STEP * (np.argsort(rng.rand(8, 9), axis=1) - 4)
    rows, columns = np.ogrid[:height, :width]
    return levels[_blocks(8, height)[rows], _blocks(9, width)[columns]][:, :, None]


def _blocks(count: int, size: int) -> np.ndarray:
    """For each of so many pixels, which block it is in."""
    return np.searchsorted(np.arange(count) * size // count, np.arange(size), side="right") - 1
