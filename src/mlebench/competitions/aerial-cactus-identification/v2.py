"""Pictures that look alike are on one side (S12); any number ranks (G18)."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align, split_by_likeness
from mlebench.metrics import auroc

from .prepare import TEST_SHARE, prepare_sides


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    rows, images = raw.table("train.csv"), raw.archive("train.zip")
    ids = rows["id"]
    pictures = [images.file(f"train/{id}") for id in ids]
    train, test = split_by_likeness(rows, pictures, ids, private, test_size=TEST_SHARE, seed=0)
    prepare_sides(train, test, raw, public, private)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target="has_cactus", values="numbers")
    return auroc(y_true, y_pred)
