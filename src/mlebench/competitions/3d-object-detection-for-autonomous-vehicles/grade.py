import json
from pathlib import Path

import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, align, read_frame, split_records, words_as_numbers
from mlebench.metrics import Objects, yaw_box_corners, yaw_box_mean_average_precision

COLUMN = "PredictionString"
IOUS = np.arange(50, 100, 5) / 100
SIZES, YAW = slice(3, 6), 6


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    predicted, true = align(submission, answers, id="Id", target=COLUMN, values="words")
    truth, found = objects_of(true), objects_of(predicted)
    require_valid_boxes(_boxes_that_count(truth, found))
    return yaw_box_mean_average_precision(truth, found, ious=IOUS)


def stand_in(public: Path) -> pd.DataFrame:
    """The sample has no boxes; here every sample has one of each class, so that each one's boxes are checked."""
    categories = json.loads((public / "test_data" / "category.json").read_text(encoding="utf-8"))
    boxes = " ".join(f"1.0 0 0 0 1 1 1 0 {category['name']}" for category in categories)
    return read_frame(public / "sample_submission.csv").assign(**{COLUMN: boxes})


def objects_of(cells: np.ndarray) -> Objects:
    rows, (*numbers, names) = split_records(COLUMN, cells, 9, sep=" ")
    confidence, *box = (words_as_numbers(COLUMN, words) for words in numbers)
    boxes = np.column_stack(box)
    if np.isinf(boxes[:, YAW]).any():
        raise InvalidSubmissionError(f"Column `{COLUMN}` holds an infinite yaw.")
    return Objects(rows, np.array(names, dtype=object), boxes, confidence)


def _boxes_that_count(truth: Objects, found: Objects) -> np.ndarray:
    """Quirk of v1: boxes of classes that a sample does not have are not checked."""
    true = set(zip(truth.images.tolist(), truth.labels, strict=True))
    counted = [pair in true for pair in zip(found.images.tolist(), found.labels, strict=True)]
    return found.boxes[np.array(counted, dtype=bool)]


def require_valid_boxes(boxes: np.ndarray) -> None:
    if np.isnan(boxes).any() or (boxes[:, SIZES] <= 0).any():
        raise InvalidSubmissionError(
            f"Column `{COLUMN}` holds a box with `nan` in it or with a size that is not positive."
        )
    with np.errstate(all="ignore"):
        corners = yaw_box_corners(boxes)
        sides = (np.roll(corners, shift, axis=1) - corners for shift in (1, -1))
        skewness = np.multiply(*sides).sum(axis=2)
    if not (np.abs(skewness) <= 1e-8).all():  # also if numbers are so large that corners get lost
        raise InvalidSubmissionError(
            f"Column `{COLUMN}` holds a box that is too large or too far away to compute with."
        )
