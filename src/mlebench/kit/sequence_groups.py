"""Groups of texts that are nearly equal, such as the sequences of related molecules."""

from collections.abc import Iterator, Sequence

import numpy as np

from mlebench.kit.picture_groups import connected

_ROWS = 256  # texts that are compared with all others at a time


def groups_of_sequences(sequences: Sequence[str], *, distance: int) -> list[int]:
    """For each sequence the number of its group, which is the position of the group's first sequence.

    Sequences are in one group if at most `distance` letters must be inserted, deleted or replaced to make one the
    other, or if others in between connect them.
    """
    return connected(len(sequences), _close_pairs(sequences, distance))


def _close_pairs(sequences: Sequence[str], distance: int) -> Iterator[tuple[int, int]]:
    from rapidfuzz.distance import Levenshtein  # here, because most competitions need not wait for it
    from rapidfuzz.process import cdist

    for start in range(0, len(sequences), _ROWS):
        block, rest = sequences[start : start + _ROWS], sequences[start:]
        distances = cdist(block, rest, scorer=Levenshtein.distance, score_cutoff=distance, dtype=np.int32)
        for first, second in np.argwhere(distances <= distance).tolist():
            if first < second:
                yield start + first, start + second
