"""Pictures of one eye that look alike are on one side (S11); kappa counts unused grades (G24), is never NaN (G19)."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align, split_by_likeness
from mlebench.metrics import quadratic_weighted_kappa

from .prepare import TEST_SHARE, prepare_sides

BITS = 2  # of 64, in which hashes of a picture and of a smaller or recoded copy may differ


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    rows = raw.table("train.csv")
    ids = rows["id_code"]
    pictures = [raw.file(f"train_images/{id}.png") for id in ids]
    train, test = split_by_likeness(rows, pictures, ids, private, test_size=TEST_SHARE, seed=0, distance=BITS)
    prepare_sides(train, test, raw, public, private)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id_code", target="diagnosis", values="integers")
    return quadratic_weighted_kappa(y_true, y_pred, by_value=True)
