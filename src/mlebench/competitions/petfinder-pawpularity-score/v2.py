"""A photo and its copies are on one side (S10); any finite number is a prediction (G18)."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align, split_by_likeness
from mlebench.metrics import rmse

from .prepare import TEST_SHARE, prepare_sides

BITS = 2  # of 64, in which hashes of a photo and of a smaller or recoded copy may differ


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    rows = raw.table("train.csv")
    ids = rows["Id"]
    photos = [raw.file(f"train/{id}.jpg") for id in ids]
    train, test = split_by_likeness(rows, photos, ids, private, test_size=TEST_SHARE, seed=0, distance=BITS)
    prepare_sides(train, test, raw, public, private)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="Id", target="Pawpularity", values="numbers")
    return rmse(y_true, y_pred, scaled=True)
