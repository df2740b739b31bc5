"""Photographs that look alike are on one side (S12); a predicted label that no test leaf has is wrong (G13)."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align, split_by_likeness
from mlebench.metrics import micro_f1_of_tags

from .prepare import TEST_SHARE, prepare_sides


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    rows = raw.table("train.csv")
    names = rows["image"]
    photographs = [raw.file(f"train_images/{name}") for name in names]
    train, test = split_by_likeness(rows, photographs, names, private, test_size=TEST_SHARE, seed=0)
    prepare_sides(train, test, raw, public, private)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="image", target="labels", values="text")
    return micro_f1_of_tags(y_true, y_pred)
