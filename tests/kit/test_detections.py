"""Objects in cells: what is read, and what is refused with which words."""

import numpy as np
import pytest

from mlebench.core.errors import InvalidSubmissionError
from mlebench.kit import parse_objects

pytestmark = pytest.mark.bytes

LABELS = ("none", "opacity")


def _cells(*texts: str) -> np.ndarray:
    return np.array(texts, dtype=object)


def test_objects_know_their_cell_label_box_and_confidence() -> None:
    objects = parse_objects(
        _cells("opacity 0.5 1 2 3 4  none 1 0 0 1 1", "", "opacity -1e3 0 0 2.5 2"), column="boxes", labels=LABELS
    )
    assert objects.images.tolist() == [0, 0, 2]
    assert objects.labels.tolist() == ["opacity", "none", "opacity"]
    assert objects.boxes.tolist() == [[1, 2, 3, 4], [0, 0, 1, 1], [0, 0, 2.5, 2]]
    assert objects.scores.tolist() == [0.5, 1, -1000]


def test_no_objects_have_boxes_all_the_same() -> None:
    objects = parse_objects(_cells("", ""), column="boxes", labels=LABELS)
    assert (len(objects.labels), objects.boxes.shape, objects.scores.shape) == (0, (0, 4), (0,))


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("opacity 1 0 0 1", "6 values for each object"),
        ("opactiy 1 0 0 1 1", "'opactiy'; did you mean opacity"),
        ("opacity nan 0 0 1 1", "infinite or `nan`"),
        ("opacity 1 0 0 inf 1", "infinite or `nan`"),
        ("opacity high 0 0 1 1", "not a number"),
    ],
)
def test_what_is_wrong_with_a_cell_is_said(cell: str, message: str) -> None:
    with pytest.raises(InvalidSubmissionError, match=message):
        parse_objects(_cells("none 1 0 0 1 1", cell), column="boxes", labels=LABELS)
