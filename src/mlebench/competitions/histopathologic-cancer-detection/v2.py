"""Patches that look alike are on one side (S12); any number ranks (G18)."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align, groups_of_pictures, split_whole_groups
from mlebench.metrics import auroc

from .prepare import prepare_sides, share_of_test


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    labels = raw.table("train_labels.csv")
    groups = groups_of_pictures([raw.file(f"train/{id}.tif") for id in labels["id"]])
    rows = labels.assign(group=groups)
    train, test = split_whole_groups(rows, groups, test_size=share_of_test(labels, raw), seed=0)
    prepare_sides(train.drop("group"), test.drop("group"), raw, public, private)
    private.write("groups.csv", test.select("id", "group"))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target="label", values="numbers")
    return auroc(y_true, y_pred)
