"""Pictures that look alike are on one side (S12), and their order says nothing about their labels (L12).

Every picture has a label, in the sample submission too (G28).
"""

import pandas as pd

from mlebench.kit import InvalidSubmissionError, Output, Raw, accepts_paths, align, split_by_likeness
from mlebench.metrics import accuracy

from .prepare import TRAIN_SHARE, prepare_sides


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    rows = raw.table("train.csv").sort_by("image_id")  # the raw table is sorted by label
    ids = rows["image_id"]
    pictures = [raw.file(f"train_images/{label}/{id}") for label, id in zip(rows["label"], ids, strict=True)]
    train, test = split_by_likeness(rows, pictures, ids, private, test_size=1 - TRAIN_SHARE, seed=0)
    prepare_sides(train, test, raw, public, private)
    public.write("sample_submission.csv", test.select("image_id").assign(label="normal"))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="image_id", target="label", values="text")
    if not y_pred.all():
        raise InvalidSubmissionError("Column `label` has empty cells.")
    return accuracy(y_true, y_pred)
