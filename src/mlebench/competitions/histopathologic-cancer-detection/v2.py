"""Patches that look alike are on one side (S12); any number ranks (G18)."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align, split_by_likeness
from mlebench.metrics import auroc

from .prepare import prepare_sides, share_of_test


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    labels = raw.table("train_labels.csv")
    ids = labels["id"]
    patches = [raw.file(f"train/{id}.tif") for id in ids]
    train, test = split_by_likeness(labels, patches, ids, private, test_size=share_of_test(labels, raw), seed=0)
    prepare_sides(train, test, raw, public, private)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target="label", values="numbers")
    return auroc(y_true, y_pred)
