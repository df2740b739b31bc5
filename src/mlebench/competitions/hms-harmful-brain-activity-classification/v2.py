"""A patient is on one side, an EEG has one test row (S7); rows are paired by id, all clipped (G8), none empty (G19)."""

import numpy as np
import pandas as pd

from mlebench.kit import (
    InvalidSubmissionError,
    Output,
    Raw,
    accepts_paths,
    align,
    is_in,
    require_row_sums,
    split_whole_groups,
)
from mlebench.metrics import kl_divergence

from .prepare import TEST_SHARE, VOTES, prepare_sides


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    rows = raw.table("train.csv")
    # The first row of each EEG, which is about its beginning: the original's test EEGs begin where the experts looked.
    order = np.lexsort((rows["eeg_sub_id"], rows["eeg_id"]))
    _, first = np.unique(rows["eeg_id"][order], return_index=True)
    eegs = rows.take(np.sort(order[first]))
    _, test = split_whole_groups(eegs, eegs["patient_id"], test_size=TEST_SHARE, seed=0)
    train = rows.where(~is_in(rows["patient_id"], test["patient_id"]))
    prepare_sides(train, test, raw, public, private)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    predicted, votes = align(submission, answers, id="eeg_id", target=VOTES, values="numbers")
    if ((predicted < 0) | (predicted > 1)).any():
        raise InvalidSubmissionError(f"Columns {', '.join(VOTES)} must hold probabilities between 0 and 1.")
    require_row_sums(predicted)
    return kl_divergence(votes / votes.sum(axis=1, keepdims=True), predicted)
