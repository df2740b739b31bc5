"""PASCAL VOC 2010's average precision: a box that is not found has no confidence (G20). There are six labels (G13)."""

import pandas as pd

from mlebench.kit import align, parse_objects
from mlebench.metrics import voc_mean_average_precision

from .grade import COLUMN, LABELS


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    cells = align(submission, answers, id="id", target=COLUMN, values="words")
    found, truth = (parse_objects(side, column=COLUMN, labels=LABELS) for side in cells)
    return voc_mean_average_precision(truth, found, iou=0.5)
