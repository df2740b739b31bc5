"""The order of test sheets says nothing about their categories (L12), which must be whole numbers (G17)."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align
from mlebench.metrics import macro_f1

from .prepare import prepare_sides, split_sheets


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_sheets(raw)
    prepare_sides(train, test.in_secret_order(raw, "train_images/"), raw, public, private)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="Id", target="Predicted", values="integers")
    return macro_f1(y_true, y_pred)
