from pathlib import Path

import numpy as np
import pandas as pd

from mlebench.kit import align, as_text, column_values, read_frame, require_columns
from mlebench.metrics import accuracy


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    require_columns(submission, ["image_id", "label"])
    labels = column_values(submission, "label")
    if pd.isna(labels).any():
        # Quirk of v1: an empty cell is a label that is never right, and turns the rest of the column into text.
        submission = submission.assign(label=as_text(labels))
    y_pred, y_true = align(submission, answers, id="image_id", target="label")
    return accuracy(y_true, y_pred)


def stand_in(public: Path) -> pd.DataFrame:
    """The images to predict, with labels of others: those of the sample are empty."""
    sample, train = read_frame(public / "sample_submission.csv"), read_frame(public / "train.csv")
    return sample.assign(label=np.resize(train["label"].to_numpy(dtype=object), len(sample)))
