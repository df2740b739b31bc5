"""Objects in the cells of a column, each as its label, the confidence in it, and the corners of its box."""

from collections.abc import Collection

import numpy as np

from mlebench.core.errors import InvalidSubmissionError
from mlebench.core.suggestions import did_you_mean
from mlebench.kit.checks import split_records, words_as_numbers
from mlebench.metrics import Objects

SHOWN = 40  # characters of a label that is unknown


def parse_objects(cells: np.ndarray, *, column: str, labels: Collection[str]) -> Objects:
    """The objects `label confidence left top right bottom` in text cells; the number of a cell is that of an image.

    A label must be one of `labels`, and all numbers finite.
    """
    images, (words, *numbers) = split_records(column, cells, 6)
    if unknown := {*words}.difference(labels):
        label = min(unknown)[:SHOWN]
        raise InvalidSubmissionError(f"Column `{column}` holds the label {label!r}; {did_you_mean(label, labels)}")
    confidence, *corners = (words_as_numbers(column, part) for part in numbers)
    boxes = np.column_stack(corners)
    if not (np.isfinite(confidence).all() and np.isfinite(boxes).all()):
        raise InvalidSubmissionError(f"Column `{column}` holds a number that is infinite or `nan`.")
    return Objects(images, np.array(words, dtype=object), boxes, confidence)
