"""Segments that follow each other are on one side (S18); each counts once (G5), and scores have fractions (G23)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from mlebench.kit import Output, Raw, RawFile, accepts_paths, align, connected, split_whole_groups, write_groups
from mlebench.metrics import mean_absolute_error

from .prepare import TEST_SHARE, prepare_sides

TEN_MINUTES = 60_000  # if times count the hundredths of a second between readings; a segment has 60,001 of these
TELLING = 3  # sensors, at least, with a reading other than zero: less can be equal by chance


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    segments = raw.table("train.csv")
    ids = segments["segment_id"]
    files = [raw.file(f"train/{id}.csv") for id in ids]
    pairs = [*_pairs_by_readings(files), *_pairs_by_times(segments["time_to_eruption"].tolist())]
    runs = ids[connected(len(ids), pairs)]
    train, test = split_whole_groups(segments, runs, test_size=TEST_SHARE, seed=0)
    prepare_sides(train, test, raw, public, private)
    _, rows = split_whole_groups(np.arange(len(runs)), runs, test_size=TEST_SHARE, seed=0)
    write_groups(private, ids[rows], runs[rows])


def _pairs_by_readings(files: Sequence[RawFile]) -> Iterator[tuple[int, int]]:
    """Segments of which the second begins with the last readings of the first."""
    beginning = defaultdict[bytes, list[int]](list)
    ends = []
    for segment, file in enumerate(files):
        with file.errors(), file.open() as stream:
            _, first, *_, last = stream.read().splitlines()
        beginning[first].append(segment)
        ends.append(last)
    for segment, last in enumerate(ends):
        if sum(any(digit in reading for digit in b"123456789") for reading in last.split(b",")) >= TELLING:
            yield from ((segment, following) for following in beginning.get(last, ()))


def _pairs_by_times(times: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Segments of which the second ends ten minutes after the first, if the same eruption follows."""
    segment_at = {time: segment for segment, time in enumerate(times)}
    for segment, time in enumerate(times):
        if time - TEN_MINUTES in segment_at:
            yield segment, segment_at[time - TEN_MINUTES]


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="segment_id", target="time_to_eruption", values="numbers")
    return mean_absolute_error(y_true, y_pred, scaled=True)
