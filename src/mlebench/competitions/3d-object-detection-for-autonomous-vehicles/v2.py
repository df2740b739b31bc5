"""Each side lists its own drives (L8); every box must be valid (G27), and a class that is not there costs (G13)."""

import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, Output, Raw, accepts_paths, align
from mlebench.metrics import yaw_box_mean_average_precision

from .grade import COLUMN, IOUS, objects_of, require_valid_boxes
from .prepare import prepare_drives, split_logs

LARGEST = 1e30  # of a box's numbers, so that volumes are finite


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    logs = split_logs(raw)
    prepare_drives(logs, logs, raw, public, private)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    predicted, true = align(submission, answers, id="Id", target=COLUMN, values="words")
    truth, found = objects_of(true), objects_of(predicted)
    if not (np.isfinite(found.boxes).all() and np.isfinite(found.scores).all()):
        raise InvalidSubmissionError(f"Column `{COLUMN}` holds a number that is infinite or `nan`.")
    require_valid_boxes(found.boxes)
    if (np.abs(found.boxes) > LARGEST).any():
        raise InvalidSubmissionError(f"Column `{COLUMN}` holds a box too large or too far away to compute with.")
    return yaw_box_mean_average_precision(truth, found, ious=IOUS, all_labels=True)
