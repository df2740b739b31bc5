"""Draws that agents cannot repeat.

The code is public, so whoever knows a fixed seed can repeat its draws. If raw data is sorted by class, an agent that
undoes a shuffle knows which row of it each test row was, and so its class. Profile v2 seeds such draws with what public
files do not show.
"""

import hashlib
import random
from collections.abc import Iterable, Sequence

import numpy as np

from mlebench.kit.raw import RawFile


def secret_random(values: Iterable[object]) -> random.Random:
    """A generator that only somebody who knows all these values, and their order, can repeat."""
    digest = hashlib.sha256()
    for value in values:
        text = str(value).encode()
        digest.update(b"%d %b\n" % (len(text), text))
    return random.Random(int.from_bytes(digest.digest(), "big"))


def secret_order(files: Sequence[RawFile]) -> np.ndarray:
    """Row numbers in an order that says nothing about the order of the raw data.

    The draw depends on the sizes of the files in the order of the raw data, which public files do not show.
    """
    rows = list(range(len(files)))
    secret_random(file.size for file in files).shuffle(rows)
    return np.array(rows, dtype=np.intp)
