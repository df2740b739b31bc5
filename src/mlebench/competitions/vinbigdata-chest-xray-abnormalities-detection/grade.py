from pathlib import Path

import numpy as np
import pandas as pd

from mlebench.kit import (
    InvalidSubmissionError,
    column_values,
    read_frame,
    renumber,
    require_columns,
    rows_of_ids,
    split_records,
    values_of,
    words_as_numbers,
)
from mlebench.metrics import Objects, coco_average_precision

COLUMN = "PredictionString"
CORNERS = ["x_min", "y_min", "x_max", "y_max"]


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    require_columns(submission, ["image_id", COLUMN])
    # Quirk of v1: an image may have several rows; their boxes are put together.
    images = rows_of_ids(submission, answers.drop_duplicates("image_id"), id="image_id")
    numbers = renumber(values_of(answers["image_id"]))
    truth = Objects(numbers, values_of(answers["class_id"]), answers[CORNERS].to_numpy(), np.ones(len(answers)))
    # Quirk of v1: corners are used as sizes, and objects are numbered from zero.
    return coco_average_precision(
        truth, _found(submission, images), iou=0.4, corners_as_sizes=True, numbered_from_zero=True
    )


def stand_in(public: Path) -> pd.DataFrame:
    """Answers have a row for each box."""
    sample = read_frame(public / "sample_submission.csv")
    return sample[["image_id"]].assign(class_id=14, class_name="No finding", x_min=0.0, y_min=0.0, x_max=1.0, y_max=1.0)


def _found(submission: pd.DataFrame, images: np.ndarray) -> Objects:
    rows, words = split_records(COLUMN, column_values(submission, COLUMN), 6, sep=" ")
    if len(np.unique(rows)) < len(submission):
        raise InvalidSubmissionError(f"Column `{COLUMN}` has blank cells; without a finding it is `14 1 0 0 1 1`.")
    classes, confidence, *corners = (words_as_numbers(COLUMN, part) for part in words)
    if not np.isfinite(classes).all():
        raise InvalidSubmissionError(f"Column `{COLUMN}` holds a class that is not a finite number.")
    return Objects(images[rows], np.trunc(classes), np.column_stack(corners), confidence)
