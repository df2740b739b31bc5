"""Metrics of found boxes against pycocotools, scikit-learn and shapely, plain restatements and worked examples."""

import contextlib
import io
import math
from typing import Any

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from shapely.geometry import Polygon

from mlebench.metrics import (
    Objects,
    average_precision,
    coco_average_precision,
    mean_average_precision_at_iou,
    voc_mean_average_precision,
    yaw_box_corners,
    yaw_box_mean_average_precision,
)
from mlebench.metrics.detection import yaw_box_iou

pytestmark = pytest.mark.bytes

NAN, INF = math.nan, math.inf
IMAGES = 3
Row = tuple[int, str, tuple[float, ...], float]


def _objects(rows: list[Row], sides: int = 4) -> Objects:
    images, labels, boxes, scores = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Objects(
        np.array(images, dtype=int),
        np.array(labels, dtype=object),
        np.array(boxes, dtype=float).reshape(-1, sides),
        np.array(scores, dtype=float),
    )


# Average precision


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3).map(lambda n: n / 4)), min_size=1, max_size=30))
def test_average_precision_is_scikit_learns(rows: list[tuple[bool, float]]) -> None:
    y_true, y_score = map(np.array, zip(*rows, strict=True))
    assume(y_true.any())
    ours = average_precision(y_true, y_score)
    assert ours == pytest.approx(sklearn.metrics.average_precision_score(y_true, y_score), abs=1e-12)
    assert type(ours) is np.float64


def test_average_precision_needs_a_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        average_precision(np.zeros(2), np.ones(2))


# Upright boxes

PLACES, SIDES = st.integers(0, 6).map(float), st.integers(1, 6).map(float)
SCORES = st.sampled_from([0.1, 0.5, 0.5, 0.9, 1.0])


@st.composite
def rows(draw: st.DrawFn, labels: str, most: int = 12) -> list[Row]:
    found = []
    for _ in range(draw(st.integers(0, most))):
        x, y, w, h = draw(PLACES), draw(PLACES), draw(SIDES), draw(SIDES)
        label, image = draw(st.sampled_from(labels)), draw(st.integers(0, IMAGES - 1))
        found.append((image, label, (x, y, x + w, y + h), draw(SCORES)))
    return found


def _shared(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    width = max(0, min(one[2], other[2]) - max(one[0], other[0]))
    height = max(0, min(one[3], other[3]) - max(one[1], other[1]))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return width * height / (sum(areas) - width * height)


def _restated_at_iou(truth: list[Row], found: list[Row]) -> float:
    precisions = []
    for label in {row[1] for row in truth}:
        pairs = []
        for image in range(IMAGES):
            free = [row[2] for row in truth if row[:2] == (image, label)]
            guesses = sorted((row for row in found if row[:2] == (image, label)), key=lambda row: -row[3])
            empty = not free and not guesses
            for *_, box, score in guesses:
                best = max(free, key=lambda true: _shared(box, true), default=())
                right = bool(best) and _shared(box, best) > 0.5
                pairs.append((right, score))
                if right:
                    free.remove(best)
            pairs += [(True, 0)] * len(free) + [(False, 0)] * empty
        precisions.append(sklearn.metrics.average_precision_score(*zip(*pairs, strict=True)))
    return float(np.mean(precisions))


@given(rows("abc"), rows("abcd"))
def test_mean_average_precision_at_iou_is_what_its_definition_says(truth: list[Row], found: list[Row]) -> None:
    assume(truth)
    ours = mean_average_precision_at_iou(_objects(truth), _objects(found), images=IMAGES)
    assert ours == pytest.approx(_restated_at_iou(truth, found), abs=1e-12)
    assert type(ours) is np.float64


@given(rows("abc"))
def test_the_truth_itself_is_perfect_at_iou(truth: list[Row]) -> None:
    assume(truth)
    assert mean_average_precision_at_iou(_objects(truth), _objects(truth), images=IMAGES) == 1


@pytest.mark.parametrize(
    ("box", "score"),
    [
        ((0, 0, 2, 2), 1.0),
        ((0, 0, 2, 1), 1 / 3),  # half is not more than half; the true one is last, with what has no score at all
        ((0, 0, 2, 1.01), 1.0),
        ((NAN, 0, 2, 2), 1 / 3),
        ((-INF, -INF, INF, INF), 1 / 3),
        ((2, 2, 0, 0), 1 / 3),
    ],
)
def test_mean_average_precision_at_iou_of_worked_examples(box: tuple[float, ...], score: float) -> None:
    truth, found = _objects([(0, "a", (0, 0, 2, 2), 1)]), _objects([(0, "a", box, 0.7)])
    assert mean_average_precision_at_iou(truth, found, images=2) == pytest.approx(score)


# PASCAL VOC


def _restated_voc(truth: list[Row], found: list[Row], iou: float) -> float:
    precisions = []
    for label in {row[1] for row in truth + found}:
        taken, hits, recalls, curve = set(), 0, [], []
        true = [row for row in truth if row[1] == label]
        guesses = sorted((row for row in found if row[1] == label), key=lambda row: -row[3])
        for rank, (image, _, box, _) in enumerate(guesses, start=1):
            shares = [_shared(box, row[2]) if row[0] == image else 0 for row in true]
            best = int(np.argmax(shares)) if shares else -1
            if best >= 0 and shares[best] > iou and best not in taken:
                taken.add(best)
                hits += 1
            recalls.append(hits / max(len(true), 1))
            curve.append(hits / rank)
        areas = [
            max(p for r, p in zip(recalls, curve, strict=True) if r >= hit / len(true)) / len(true)
            for hit in range(1, hits + 1)
        ]
        precisions.append(sum(areas))
    return float(np.mean(precisions))


@given(rows("abc"), rows("abcd", most=20), st.sampled_from([0.4, 0.5]))
def test_voc_mean_average_precision_is_what_its_definition_says(truth: list[Row], found: list[Row], iou: float) -> None:
    assume(truth)
    ours = voc_mean_average_precision(_objects(truth), _objects(found), iou=iou)
    assert ours == pytest.approx(_restated_voc(truth, found, iou), abs=1e-12)
    assert type(ours) is np.float64


@given(rows("abc"), rows("abc"))
def test_wrong_boxes_that_are_less_sure_than_all_right_ones_cost_nothing_in_voc(
    truth: list[Row], found: list[Row]
) -> None:
    assume(truth and len({row[:3] for row in truth}) == len(truth))  # of equal boxes, only one can be taken
    labels = {row[1] for row in truth}
    wrong = [(image, label, box, -1.0) for image, label, box, _ in found if label in labels]
    assert voc_mean_average_precision(_objects(truth), _objects(truth + wrong), iou=0.5) == 1


@pytest.mark.parametrize(
    ("found", "score"),
    [
        ([], 0),
        ([("a", (0, 0, 2, 1), 0.9)], 0),  # half is not more than half
        ([("a", (0, 0, 2, 1.5), 0.9)], 1 / 2),
        ([("a", (0, 0, 2, 2), 0.9), ("a", (0, 0, 2, 2), 0.8), ("a", (5, 5, 6, 6), 0.7)], 1 / 2 + 1 / 2 * 2 / 3),
        ([("a", (0, 0, 2, 2), 0.9), ("a", (0, 0, 2, 2), 0.8)], 1 / 2),  # the second one finds nothing new
        ([("a", (9, 9, 10, 10), -1)], 0),  # a box that is not found has no score at all
        ([("a", (0, 0, 2, 2), 0.9), ("b", (0, 0, 2, 2), 0.1)], 1 / 4),  # the label that nothing has counts
    ],
)
def test_voc_mean_average_precision_of_worked_examples(
    found: list[tuple[str, tuple[float, ...], float]], score: float
) -> None:
    truth = _objects([(0, "a", (0, 0, 2, 2), 1), (0, "a", (5, 5, 6, 6), 1)])
    ours = voc_mean_average_precision(truth, _objects([(0, *row) for row in found]), iou=0.5)
    assert ours == pytest.approx(score)


# COCO


def _pycocotools(truth: Objects, found: Objects, iou: float, *, as_sizes: bool, first: int) -> float:
    def dataset(objects: Objects) -> COCO:
        made = COCO()
        annotations: list[dict[str, Any]] = []
        zipped = zip(objects.images.tolist(), objects.labels.tolist(), objects.boxes, objects.scores, strict=True)
        for number, (image, label, (x, y, right, bottom), score) in enumerate(zipped, start=first):
            size = (right, bottom) if as_sizes else (right - x, bottom - y)
            area = (right - x) * (bottom - y)
            more = {"bbox": np.array([x, y, *size]), "area": area, "iscrowd": 0, "score": score}
            annotations.append({"id": number, "image_id": image, "category_id": label, **more})
        categories = [{"id": label} for label in sorted(set(truth.labels.tolist()))]
        # It asks for less than its stubs do.
        contents: Any = {"images": [{"id": n} for n in range(IMAGES)], "categories": categories}
        made.dataset = contents | {"annotations": annotations}
        made.createIndex()
        return made

    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = COCOeval(dataset(truth), dataset(found), "bbox")
        evaluation.params.iouThrs = np.array([iou])
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation.stats[0]


@given(rows("abc"), rows("abcd", most=20), st.sampled_from([0.4, 0.5, 1.0]), st.booleans(), st.booleans())
def test_coco_average_precision_is_pycocotools(
    truth: list[Row], found: list[Row], iou: float, as_sizes: bool, from_zero: bool
) -> None:
    assume(truth)
    expected = _pycocotools(_objects(truth), _objects(found), iou, as_sizes=as_sizes, first=0 if from_zero else 1)
    ours = coco_average_precision(
        _objects(truth), _objects(found), iou=iou, corners_as_sizes=as_sizes, numbered_from_zero=from_zero
    )
    assert ours == pytest.approx(expected, abs=1e-12)
    assert type(ours) is np.float64


ANYTHING = st.sampled_from([NAN, INF, -INF, -3.0, -1.0, 0.0, 0.5, 2.0, 4.0, 1e6])


@given(
    rows("ab"),
    st.lists(
        st.tuples(
            st.integers(0, IMAGES - 1),
            st.sampled_from("ab"),
            st.tuples(ANYTHING, ANYTHING, ANYTHING, ANYTHING),
            ANYTHING,
        ),
        max_size=8,
    ),
    st.booleans(),
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_coco_average_precision_of_odd_boxes_is_pycocotools(truth: list[Row], found: list[Row], as_sizes: bool) -> None:
    assume(truth)
    expected = _pycocotools(_objects(truth), _objects(found), 0.4, as_sizes=as_sizes, first=0)
    ours = coco_average_precision(
        _objects(truth), _objects(found), iou=0.4, corners_as_sizes=as_sizes, numbered_from_zero=True
    )
    assert ours == pytest.approx(expected, abs=1e-12)


def test_only_the_hundred_most_confident_boxes_count() -> None:
    truth = _objects([(0, "a", (0, 0, 2, 2), 1)])
    wrong: list[Row] = [(0, "a", (5, 5, 6, 6), 0.9)] * 99
    right: list[Row] = [(0, "a", (0, 0, 2, 2), 0.5)]
    for found, score in ((_objects([*wrong, *right]), 1 / 100), (_objects([*wrong, *wrong[:1], *right]), 0.0)):
        assert coco_average_precision(truth, found, iou=0.4) == pytest.approx(score)
        assert _pycocotools(truth, found, 0.4, as_sizes=False, first=1) == pytest.approx(score)


def test_what_numbers_from_zero_do_to_a_perfect_list() -> None:
    truth = _objects([(number, "a", (0, 0, 2, 2), 1.0) for number in range(IMAGES)])
    assert coco_average_precision(truth, truth, iou=0.4) == 1
    spoilt = coco_average_precision(truth, truth, iou=0.4, numbered_from_zero=True)
    assert spoilt == pytest.approx(67 * (2 / 3) / 101)  # one of three is wrong, and recall ends at two thirds


# Boxes that stand on the ground

CLOSE, SIZE = st.floats(-3, 3), st.floats(0.3, 5)
YAW_BOX = st.tuples(CLOSE, CLOSE, CLOSE, SIZE, SIZE, SIZE, st.floats(-4, 4) | st.sampled_from([0.0, math.pi / 2]))


def _polygon(box: np.ndarray) -> Polygon:
    x, y, _, width, length, _, yaw = box
    turned = complex(math.cos(yaw), math.sin(yaw))
    corners = [complex(a * length, b * width) / 2 * turned for a, b in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
    return Polygon([(x + corner.real, y + corner.imag) for corner in corners])


def _volumes_shared(one: np.ndarray, other: np.ndarray) -> float:
    height = min(one[2] + one[5] / 2, other[2] + other[5] / 2) - max(one[2] - one[5] / 2, other[2] - other[5] / 2)
    shared = _polygon(one).intersection(_polygon(other)).area * max(0, height)
    return shared / (np.prod(one[3:6]) + np.prod(other[3:6]) - shared)


@given(st.lists(YAW_BOX, min_size=1, max_size=4), st.lists(YAW_BOX, min_size=1, max_size=4), st.sampled_from([0, 2000]))
def test_yaw_box_iou_is_shapelys(one: list[tuple], other: list[tuple], away: float) -> None:
    found, true = np.array(one), np.array(other)
    found[:, :2] += away
    true[:, :2] += away
    expected = [[_volumes_shared(a, b) for b in true] for a in found]
    assert yaw_box_iou(found, true) == pytest.approx(np.array(expected), abs=1e-9)


@given(st.lists(YAW_BOX, min_size=1, max_size=4))
def test_yaw_box_iou_of_a_box_with_itself_is_one_and_both_ways_the_same(boxes: list[tuple]) -> None:
    ours = yaw_box_iou(np.array(boxes), np.array(boxes))
    assert np.diag(ours) == pytest.approx(1)
    assert ours == pytest.approx(ours.T)
    assert ((ours >= 0) & (ours <= 1)).all()


@given(YAW_BOX)
def test_corners_of_a_yaw_box_are_those_of_its_polygon(box: tuple) -> None:
    (corners,) = yaw_box_corners(np.array([box]))
    assert Polygon(corners).symmetric_difference(_polygon(np.array(box))).area == pytest.approx(0, abs=1e-9)
    assert Polygon(corners).exterior.is_ccw


def _restated_3d(truth: list[Row], found: list[Row], ious: list[float]) -> float:
    scores = []
    for image in {row[0] for row in truth}:
        for iou in ious:
            precisions = []
            for label in {row[1] for row in truth if row[0] == image}:
                true = [np.array(row[2]) for row in truth if row[:2] == (image, label)]
                guesses = sorted((row for row in found if row[:2] == (image, label)), key=lambda row: -row[3])
                taken: set[int] = set()
                points = [(0.0, 1.0)]
                for count, (*_, box, _) in enumerate(guesses, start=1):
                    shares = [_volumes_shared(np.array(box), other) for other in true]
                    best = int(np.argmax(shares))
                    if shares[best] > iou:
                        taken.add(best)
                    points.append((len(taken) / len(true), len(taken) / count))
                steps = zip(points[1:], points, strict=False)
                gains = [(new[0] - old[0], place) for place, (new, old) in enumerate(steps, start=1)]
                precisions.append(sum(gain * max(p for _, p in points[place:]) for gain, place in gains))
            scores.append(np.mean(precisions))
    return float(np.mean(scores))


@st.composite
def yaw_rows(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    """True boxes, and found ones that are true ones moved a little, or anything."""
    some = st.tuples(st.integers(0, 1), st.sampled_from("ab"), YAW_BOX, st.just(1.0))
    truth = draw(st.lists(some, min_size=1, max_size=5))
    shift = arrays(float, 7, elements=st.floats(-0.2, 0.2))
    near = st.builds(
        lambda row, by, score: (row[0], row[1], tuple(np.array(row[2]) + by), score),
        st.sampled_from(truth),
        shift,
        st.sampled_from([0.1, 0.5, 0.5, 0.9]),
    )
    far = st.tuples(st.integers(0, 2), st.sampled_from("abc"), YAW_BOX, SCORES)
    return truth, draw(st.lists(near | far, max_size=8))


@given(yaw_rows())
def test_yaw_box_mean_average_precision_is_what_its_definition_says(data: tuple[list[Row], list[Row]]) -> None:
    truth, found = data
    # A share of exactly an IoU goes either way, and so does the better of two equals.
    ious = [0.0517, 0.3013, 0.5009, 0.7511]
    ours = yaw_box_mean_average_precision(_objects(truth, 7), _objects(found, 7), ious=ious)
    shares = [[_volumes_shared(np.array(a[2]), np.array(b[2])) for b in truth if a[:2] == b[:2]] for a in found]
    assume(all(abs(share - iou) > 1e-6 for row in shares for share in row for iou in ious))
    assume(all(len({round(share, 6) for share in row if share}) == sum(share > 0 for share in row) for row in shares))
    assert ours == pytest.approx(_restated_3d(truth, found, ious), abs=1e-9)
    assert type(ours) is np.float64


@pytest.mark.parametrize(
    ("found", "score"),
    [
        ([(0, "a", (0, 0, 0, 2, 4, 2, 0), 0.9)], 0.5),
        ([(0, "a", (0, 0, 0, 4, 2, 2, math.pi / 2), 0.9)], 0.5),  # the same box
        ([(0, "a", (0, 0, 0, 2, 4, 2, math.pi), 0.9)], 0.5),  # turned around, it is the same
        ([(0, "a", (0, 0, 1, 2, 4, 2, 0), 0.9)], 0.0),  # a third is shared
        ([(0, "a", (0, 0, 0, 2, 4, 2, 0), 0.5), (0, "a", (9, 9, 0, 2, 4, 2, 0), 0.9)], 0.25),
        ([(0, "a", (0, 0, 0, 2, 4, 2, 0), 0.9)] * 2, 0.5),  # found twice
        ([(0, "b", (0, 0, 0, 2, 4, 2, 0), 0.9)], 0.0),
        ([(0, "c", (0, 0, 0, 2, 4, 2, 0), 0.9)], 0.0),
        ([], 0.0),
    ],
)
def test_yaw_box_mean_average_precision_of_worked_examples(found: list[Row], score: float) -> None:
    truth: list[Row] = [(0, "a", (0, 0, 0, 2, 4, 2, 0), 1.0), (0, "b", (5, 5, 0, 1, 1, 1, 0), 1.0)]
    ours = yaw_box_mean_average_precision(_objects(truth, 7), _objects(found, 7), ious=[0.5])
    assert ours == pytest.approx(score)


def test_a_label_that_another_image_has_costs_with_all_labels() -> None:
    box = (0, 0, 0, 2, 4, 2, 0)
    truth: list[Row] = [(0, "a", box, 1.0), (1, "b", box, 1.0)]
    found: list[Row] = [*truth, (0, "b", box, 0.1), (1, "c", box, 0.9)]
    scores = [
        yaw_box_mean_average_precision(_objects(truth, 7), _objects(found, 7), ious=[0.5], all_labels=all_labels)
        for all_labels in (False, True)
    ]
    assert scores == [1, 0.75]
