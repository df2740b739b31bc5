"""Metrics of things found in images against a plain restatement and worked examples, and by properties."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mlebench.metrics import Boxes, Points, points_in_boxes_f1

pytestmark = pytest.mark.bytes

Box = tuple[str, float, float, float, float]
Point = tuple[str, float, float]
Image = tuple[list[Box], list[Point]]


def _boxes(boxes: Sequence[Box]) -> Boxes:
    return Boxes([box[0] for box in boxes], *np.array([box[1:] for box in boxes], dtype=float).reshape(-1, 4).T)


def _points(points: Sequence[Point]) -> Points:
    return Points([point[0] for point in points], *np.array([p[1:] for p in points], dtype=float).reshape(-1, 2).T)


def _score(images: list[Image]) -> float:
    return points_in_boxes_f1([_boxes(boxes) for boxes, _ in images], [_points(points) for _, points in images])


def _restated(images: list[Image]) -> float:
    """Each box in turn takes the first point it can; boxes left over were missed, and points left over are wrong."""
    right = missed = wrong = 0
    for boxes, points in images:
        left = list(points)
        for label, x, y, width, height in boxes:
            fitting = [p for p in left if p[0] == label and x < p[1] < x + width and y < p[2] < y + height]
            if fitting:
                right += 1
                left.remove(fitting[0])
            else:
                missed += 1
        wrong += len(left)
    return 2 * right / (2 * right + missed + wrong) if right else 0.0


LABELS, PLACES = st.sampled_from(["a", "b"]), st.integers(0, 6).map(float)
SIZES = st.integers(0, 6).map(float)
IMAGES = st.lists(
    st.tuples(
        st.lists(st.tuples(LABELS, PLACES, PLACES, SIZES, SIZES), max_size=8),
        st.lists(st.tuples(LABELS | st.just("c"), PLACES, PLACES), max_size=8),
    ),
    max_size=4,
)


@given(IMAGES)
def test_points_in_boxes_f1_is_what_its_definition_says(images: list[Image]) -> None:
    ours = _score(images)
    assert ours == pytest.approx(_restated(images), abs=1e-12)
    assert 0 <= ours <= 1
    assert type(ours) is float


@given(IMAGES)
def test_points_in_the_middle_of_their_boxes_are_all_right_and_doubles_are_wrong(images: list[Image]) -> None:
    boxes = [[box for box in boxes if box[3] and box[4]] for boxes, _ in images]
    assume(any(boxes))
    centres = [[(label, x + w / 2, y + h / 2) for label, x, y, w, h in page] for page in boxes]
    assume(all(len(set(page)) == len(page) for page in centres))
    # A box of the same label may take another's point; without that every box has its own.
    alone = all(
        sum(b[0] == p[0] and b[1] < p[1] < b[1] + b[3] and b[2] < p[2] < b[2] + b[4] for b in page) == 1
        for page, points in zip(boxes, centres, strict=True)
        for p in points
    )
    assume(alone)
    assert _score(list(zip(boxes, centres, strict=True))) == 1
    doubled = [page + page for page in centres]
    assert _score(list(zip(boxes, doubled, strict=True))) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("boxes", "points", "score"),
    [
        ([("a", 1, 1, 10, 10)], [("a", 3, 3)], 1.0),
        ([("a", 1, 1, 10, 10)], [("b", 3, 3)], 0.0),
        ([("a", 1, 1, 10, 10)], [("a", 1, 3)], 0.0),  # on the edge
        ([("a", 1, 1, 10, 10)], [("a", 11, 3)], 0.0),
        ([("a", 1, 1, 10, 10)], [("a", 10.99, 1.01)], 1.0),
        ([("a", 1, 1, 10, 10)], [("a", float("nan"), 3)], 0.0),
        ([("a", 1, 1, 10, 10)], [("a", 3, 3), ("a", 4, 4)], 2 / 3),
        ([("a", 1, 1, 10, 10)], [], 0.0),
        ([], [("a", 3, 3)], 0.0),
        ([], [], 0.0),
        # The wide box comes first and takes the only point of the narrow one.
        ([("a", 0, 0, 9, 9), ("a", 0, 0, 3, 3)], [("a", 1, 1), ("a", 7, 7)], 0.5),
        ([("a", 0, 0, 3, 3), ("a", 0, 0, 9, 9)], [("a", 1, 1), ("a", 7, 7)], 1.0),
        ([("a", 0, 0, 9, 9), ("a", 0, 0, 3, 3)], [("a", 7, 7), ("a", 1, 1)], 1.0),
    ],
)
def test_points_in_boxes_f1_of_worked_examples(boxes: list[Box], points: list[Point], score: float) -> None:
    assert _score([(boxes, points)]) == pytest.approx(score)


def test_characters_of_all_images_count_equally() -> None:
    hit: Image = [("a", 0, 0, 2, 2)], [("a", 1, 1)]
    missed: Image = [("a", 0, 0, 2, 2)] * 3, []
    assert _score([hit, missed]) == pytest.approx(2 * 1 * 0.25 / 1.25)
