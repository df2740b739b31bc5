import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, align, is_in, split_records, words_as_numbers
from mlebench.metrics import Objects, mean_average_precision_at_iou

COLUMN = "PredictionString"
LABELS = ("negative", "typical", "indeterminate", "atypical", "none", "opacity")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    predicted, true = align(submission, answers, id="id", target=COLUMN, values="any")
    found = _objects(predicted)
    # Quirk of v1: other labels never count, so that their confidence may be anything.
    if not np.isfinite(found.scores[is_in(found.labels, LABELS)]).all():
        raise InvalidSubmissionError(f"Column `{COLUMN}` holds a confidence that is not a finite number.")
    return mean_average_precision_at_iou(_objects(true), found, images=len(true))


def _objects(cells: np.ndarray) -> Objects:
    rows, (labels, *numbers) = split_records(COLUMN, cells, 6)
    confidence, *corners = (words_as_numbers(COLUMN, words) for words in numbers)
    return Objects(rows, np.array(labels, dtype=object), np.column_stack(corners), confidence)
