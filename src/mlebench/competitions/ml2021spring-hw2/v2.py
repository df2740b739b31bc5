"""All frames of an utterance are on one side of the split (S1).

An utterance ends where a row does not continue the one before it: ten of the eleven frames of two rows in sequence are
the same.
"""

import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, split_whole_groups

from .prepare import frames_of, test_share, write_parts

FRAME = 39  # numbers that describe a frame
AT_ONCE = 1 << 16  # rows


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    utterances = np.cumsum(_starts(frames_of(raw)))
    train, test = split_whole_groups(np.arange(len(utterances)), utterances, test_size=test_share(raw), seed=0)
    write_parts(train, test, raw, public, private)
    private.write("groups.csv", Table.from_columns({"id": np.arange(len(test)), "group": utterances[test]}))


def _starts(frames: np.ndarray) -> np.ndarray:
    """Which rows begin an utterance."""
    starts = np.ones(len(frames), dtype=bool)
    for first in range(1, len(frames), AT_ONCE):
        rows = frames[first - 1 : first + AT_ONCE]
        starts[first : first + AT_ONCE] = (rows[1:, :-FRAME] != rows[:-1, FRAME:]).any(axis=1)
    return starts
