"""Metrics of things found in images."""

from collections.abc import Callable, Sequence
from operator import gt
from typing import Any, NamedTuple

import numpy as np

from mlebench.metrics.ranking import average_precision

COCO_RECALLS = np.linspace(0, 1, 101)
COCO_LARGEST_AREA = 1e5**2


class Boxes(NamedTuple):
    """Upright boxes in an image, each with a label."""

    labels: Sequence[str]
    left: np.ndarray
    top: np.ndarray
    width: np.ndarray
    height: np.ndarray


class Points(NamedTuple):
    """Points in an image, each with a label."""

    labels: Sequence[str]
    x: np.ndarray
    y: np.ndarray


class Objects(NamedTuple):
    """Objects in images, a row for each: the image's number, the label, and a box of the kind that a metric asks for.

    For found objects, `scores` give the confidence; for true objects they do not matter.
    """

    images: np.ndarray
    labels: np.ndarray
    boxes: np.ndarray
    scores: np.ndarray


def points_in_boxes_f1(boxes: Sequence[Boxes], points: Sequence[Points]) -> float:
    """F1 over all images of points that should be in boxes of their label; higher is better, 0 where none is.

    A point on a box's edge is not in it. Boxes choose in turn, each the first of its points that is still free, so
    which point goes to which box depends on both orders.
    """
    hits = sum(_hits(*image) for image in zip(boxes, points, strict=True))
    if not hits:
        return 0.0
    precision = hits / sum(len(image.labels) for image in points)
    recall = hits / sum(len(image.labels) for image in boxes)
    return 2 * precision * recall / (precision + recall)


def _hits(boxes: Boxes, points: Points) -> int:
    """How many boxes of an image get a point."""
    numbers = {label: number for number, label in enumerate(boxes.labels)}
    box_labels = np.array([numbers[label] for label in boxes.labels], dtype=int)
    point_labels = np.array([numbers.get(label, -1) for label in points.labels], dtype=int)
    left, top = boxes.left[:, None], boxes.top[:, None]
    right, bottom = (boxes.left + boxes.width)[:, None], (boxes.top + boxes.height)[:, None]
    fits = (
        (box_labels[:, None] == point_labels)
        & (left < points.x)
        & (points.x < right)
        & (top < points.y)
        & (points.y < bottom)
    )
    served, used = -1, set()
    for box, point in np.argwhere(fits).tolist():  # boxes in turn; few pairs fit
        if box != served and point not in used:
            served = box
            used.add(point)
    return len(used)


def mean_average_precision_at_iou(truth: Objects, found: Objects, *, images: int, iou: float = 0.5) -> float:
    """The mean over true labels of `average_precision`, for boxes (left, top, right, bottom); higher is better.

    In each image the surest box comes first; it takes the free true box of its label that it overlaps most, and is
    right, if that is by more than `iou`. True boxes that stay free are right ones of score 0; each of the `images`
    with no box of a label, neither true nor found, counts as a wrong one of score 0.
    """
    true_rows, found_rows = _rows_by_label(truth), _rows_by_label(found, _surest_first(found))
    precisions = []
    for label in sorted(true_rows):
        in_truth, in_found = true_rows[label], found_rows.get(label, {})
        right, scores = [], []
        for image, rows in in_found.items():
            overlaps = box_iou(found.boxes[rows], truth.boxes[in_truth.get(image, [])])
            right.append(_greedy_matches(overlaps, iou, gt) >= 0)
            scores.append(found.scores[rows])
        hits = int(sum(map(np.sum, right)))
        missed = sum(map(len, in_truth.values())) - hits
        empty = images - len(in_truth.keys() | in_found.keys())
        y_true = np.concatenate([*right, np.ones(missed), np.zeros(empty)])
        precisions.append(average_precision(y_true, np.concatenate([*scores, np.zeros(missed + empty)])))
    return np.float64(np.mean(precisions))


def voc_mean_average_precision(truth: Objects, found: Objects, *, iou: float) -> float:
    """PASCAL VOC 2010's mean average precision, for boxes (left, top, right, bottom); higher is better.

    The surest box comes first. It is right if it overlaps, by more than `iou`, the true box of its image and label that
    it overlaps most, and no surer box has taken that one. Precision, taken as the best at this recall or a higher one,
    is integrated over recall. The mean is over all labels, true or found; one that is only found counts as 0.
    """
    true_rows, found_rows = _rows_by_label(truth), _rows_by_label(found)
    nearest, shared = np.full(len(found.labels), -1), np.zeros(len(found.labels))
    for label, in_found in found_rows.items():
        for image, rows in in_found.items():
            if true := true_rows.get(label, {}).get(image):
                overlaps = box_iou(found.boxes[rows], truth.boxes[true])
                nearest[rows], shared[rows] = np.array(true)[overlaps.argmax(axis=1)], overlaps.max(axis=1)
    order, precisions = _surest_first(found), []
    for label in sorted(true_rows.keys() | found_rows.keys()):
        rows, truths = order[found.labels[order] == label], sum(map(len, true_rows.get(label, {}).values()))
        precisions.append(_integrated_precision(nearest[rows], shared[rows] > iou, truths) if truths else 0.0)
    return np.float64(np.mean(precisions))


def coco_average_precision(
    truth: Objects,
    found: Objects,
    *,
    iou: float,
    most: int = 100,
    corners_as_sizes: bool = False,
    numbered_from_zero: bool = False,
) -> float:
    """COCO's average precision at one IoU, for boxes (left, top, right, bottom); higher is better.

    In each image and label, the `most` most confident boxes take in turn the free true box that they overlap most, by
    at least `iou`; the others are wrong, or do not count if their area is negative or huge. Precision, taken as the
    best at this recall or a higher one, is averaged over 101 recalls and then over true labels.

    With `corners_as_sizes` right and bottom are used as width and height, except in areas. With `numbered_from_zero`
    objects are numbered from 0, which to COCO's program means no object: finding the very first true object never
    counts, and the first object found leaves the true object that it takes free for others.
    """
    true_rows, found_rows = _rows_by_label(truth), _rows_by_label(found, _surest_first(found))
    left, top, right, bottom = found.boxes.T
    with np.errstate(invalid="ignore", over="ignore"):
        areas = (right - left) * (bottom - top)
    outside = (areas < 0) | (areas > COCO_LARGEST_AREA)
    least = min(iou, 1 - 1e-10)
    curves = []
    for label in sorted(true_rows):
        in_truth, in_found = true_rows[label], found_rows.get(label, {})
        hits, order = np.zeros(len(found.scores), dtype=bool), []
        for image in sorted(in_found):
            rows, true = in_found[image][:most], in_truth.get(image, [])
            overlaps = _coco_overlaps(found.boxes[rows], truth.boxes[true], corners_as_sizes)
            frees = rows.index(0) if numbered_from_zero and 0 in rows else None
            matches = np.append(true, -1).astype(int)[_greedy_matches(overlaps, least, _not_below, frees=frees)]
            hits[rows] = matches >= (1 if numbered_from_zero else 0)
            order += rows
        rows = np.array(order, dtype=int)
        rows = rows[np.argsort(-found.scores[rows], kind="stable")]
        rows = rows[hits[rows] | ~outside[rows]]
        curves.append(_precision_at_recalls(hits[rows], sum(map(len, in_truth.values()))))
    return np.column_stack(curves).mean()


def box_iou(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Intersection over union (found × true) of boxes (left, top, right, bottom); 0 where the union is not positive."""
    found_boxes, true_boxes = found[:, None], true[None]
    with np.errstate(all="ignore"):  # boxes may hold anything
        size, true_size = (box[..., 2:] - box[..., :2] for box in (found_boxes, true_boxes))
        ends = np.minimum(found_boxes[..., 2:], true_boxes[..., 2:])
        sides = ends - np.maximum(found_boxes[..., :2], true_boxes[..., :2])
        shared = np.maximum(sides, 0).prod(axis=2)
        union = size.prod(axis=2) + true_size.prod(axis=2) - shared
        return np.where(union > 0, shared / union, 0)


def yaw_box_mean_average_precision(
    truth: Objects, found: Objects, *, ious: Sequence[float] | np.ndarray, all_labels: bool = False
) -> float:
    """Average precision of boxes that stand on the ground, averaged over labels, IoUs and images; higher is better.

    Boxes are (x, y, z of the centre, width, length, height, yaw); the yaw turns the length away from the x axis. In
    each image and label the most confident box comes first; it is right if it shares more than the IoU with the true
    box that it overlaps most, and no other box has taken that one. Precision, taken as the best at this recall or a
    higher one, is integrated over recall. An image counts with the mean over its true labels only or, with
    `all_labels`, also over those that it has not but another image has, if they are found in it.
    """
    true_rows, found_rows = _rows_by_label(truth), _rows_by_label(found)
    scores = found.scores.tolist()
    precisions: dict[Any, list[list[float]]] = {}
    for label, in_truth in true_rows.items():
        for image, true in in_truth.items():
            rows = sorted(found_rows.get(label, {}).get(image, []), key=scores.__getitem__, reverse=True)
            overlaps = yaw_box_iou(found.boxes[rows], truth.boxes[true])
            precisions.setdefault(image, []).append(_integrated_precisions(overlaps, ious))
        if all_labels:
            for image in found_rows.get(label, {}).keys() - in_truth.keys():
                precisions.setdefault(image, []).append([0.0] * len(ious))
    return np.float64(np.mean([np.mean(of_labels, axis=0) for of_labels in precisions.values()]))


def yaw_box_corners(boxes: np.ndarray) -> np.ndarray:
    """The corners of boxes on the ground, one after the other around each: boxes × 4 × (x, y)."""
    ahead, aside = _directions(boxes)
    length, width = boxes[:, 4, None] / 2 * ahead, boxes[:, 3, None] / 2 * aside
    return boxes[:, None, :2] + np.stack([length - width, length + width, width - length, -length - width], axis=1)


def yaw_box_iou(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Intersection over union of volumes: found × true boxes."""
    result = np.zeros((len(found), len(true)))
    apart = np.hypot(*np.moveaxis(found[:, None, :2] - true[None, :, :2], 2, 0))
    reach = np.hypot(found[:, 3], found[:, 4])[:, None] / 2 + np.hypot(true[:, 3], true[:, 4]) / 2
    ours, theirs = np.nonzero(apart <= reach)  # few are near enough to touch
    ours_boxes, other = found[ours], true[theirs]
    bottom = np.maximum(ours_boxes[:, 2] - ours_boxes[:, 5] / 2, other[:, 2] - other[:, 5] / 2)
    top = np.minimum(ours_boxes[:, 2] + ours_boxes[:, 5] / 2, other[:, 2] + other[:, 5] / 2)
    shared = _ground_intersections(ours_boxes, other) * np.maximum(top - bottom, 0)
    union = ours_boxes[:, 3:6].prod(axis=1) + other[:, 3:6].prod(axis=1) - shared
    result[ours, theirs] = np.clip(shared / union, 0, 1)
    return result


def _ground_intersections(boxes: np.ndarray, partners: np.ndarray) -> np.ndarray:
    """The area that each box shares with its partner, seen from above.

    In the other box's own axes, the outline of the first is pressed into that box, one axis after the other: what is
    beyond an edge ends up on the edge, where it has no area.
    """
    axes = np.stack(_directions(partners), axis=1)  # pairs × (length, width) × (x, y)
    outline = np.einsum("pax,pcx->pca", axes, yaw_box_corners(boxes) - partners[:, None, :2])
    for axis, half in ((0, partners[:, 4] / 2), (1, partners[:, 3] / 2)):
        outline = _pressed(outline, axis, half[:, None])
    x, y = np.moveaxis(outline, 2, 0)
    return np.abs(np.sum(x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1), axis=1)) / 2


def _pressed(outline: np.ndarray, axis: int, half: np.ndarray) -> np.ndarray:
    """Outlines (pairs × corners × 2) whose points are moved, along one axis, into the strip from -half to half."""
    steps = np.roll(outline, -1, axis=1) - outline
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = np.stack([(edge - outline[:, :, axis]) / steps[:, :, axis] for edge in (-half, half)], axis=2)
    # How far along each side of the outline new corners are; a side that runs along the strip gets none.
    crossings = np.sort(np.clip(np.nan_to_num(crossings, nan=0), 0, 1), axis=2)
    shares = np.concatenate([np.zeros_like(crossings[:, :, :1]), crossings], axis=2)
    points = outline[:, :, None] + shares[:, :, :, None] * steps[:, :, None]
    points = points.reshape(len(outline), 3 * outline.shape[1], 2)
    points[:, :, axis] = np.clip(points[:, :, axis], -half, half)
    return points


def _directions(boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors along the length and the width of boxes."""
    # Not the cosine of the yaw itself: published scores come from quaternions, which hold half the angle.
    real, imaginary = np.cos(boxes[:, 6] / 2), np.sin(boxes[:, 6] / 2)
    cosine, sine = real**2 - imaginary**2, 2 * real * imaginary
    return np.column_stack([cosine, sine]), np.column_stack([-sine, cosine])


def _integrated_precisions(overlaps: np.ndarray, ious: Sequence[float] | np.ndarray) -> list[float]:
    """Average precision at each IoU, of boxes (rows, surest first) that may find each true box (columns) once."""
    if not len(overlaps):
        return [0.0] * len(ious)
    shared, taken = overlaps.max(axis=1), overlaps.argmax(axis=1)
    return [_integrated_precision(taken, shared > iou, overlaps.shape[1]) for iou in ious]


def _integrated_precision(taken: np.ndarray, sharing: np.ndarray, truths: int) -> float:
    """Average precision of boxes, some of which overlap enough with the true box that they would take."""
    takers = np.flatnonzero(sharing)
    hits = np.zeros(len(taken))
    hits[takers[np.unique(taken[takers], return_index=True)[1]]] = 1  # the first to take it
    right = np.cumsum(hits)
    best = _envelope(right / np.arange(1, len(right) + 1))
    return np.sum(np.diff(right / truths, prepend=0) * best)


def _precision_at_recalls(hits: np.ndarray, truths: int) -> np.ndarray:
    """Precision at COCO's recalls, 0 at those that are not reached."""
    right = np.cumsum(hits)
    best = _envelope(right / (np.arange(1, len(right) + 1) + np.spacing(1)))
    return np.append(best, 0)[np.searchsorted(right / truths, COCO_RECALLS)]


def _envelope(precision: np.ndarray) -> np.ndarray:
    """The best precision from each place on."""
    return np.maximum.accumulate(precision[::-1])[::-1]


def _rows_by_label(objects: Objects, order: np.ndarray | None = None) -> dict[Any, dict[Any, list[int]]]:
    """For each label and then each image, the row numbers of objects, in an order."""
    rows: dict[Any, dict[Any, list[int]]] = {}
    order = np.arange(len(objects.labels)) if order is None else order
    labels, images = objects.labels[order].tolist(), objects.images[order].tolist()
    for row, label, image in zip(order.tolist(), labels, images, strict=True):
        rows.setdefault(label, {}).setdefault(image, []).append(row)
    return rows


def _surest_first(objects: Objects) -> np.ndarray:
    return np.argsort(-objects.scores, kind="stable")


def _greedy_matches(
    overlaps: np.ndarray, least: float, beats: Callable[[float, float], bool], *, frees: int | None = None
) -> np.ndarray:
    """For each box in turn (a row), the free true box (a column) that it overlaps most, or -1.

    The box given by `frees` leaves what it takes free for others.
    """
    matches, free = [], list(range(overlaps.shape[1]))
    for row, shares in enumerate(overlaps.tolist()):
        best, match = least, -1
        for true in free:
            if beats(shares[true], best):
                best, match = shares[true], true
        matches.append(match)
        if match >= 0 and row != frees:
            free.remove(match)
    return np.array(matches, dtype=int)


def _not_below(overlap: float, best: float) -> bool:
    """Compares as COCO does: among equals the last one wins, and so does NaN."""
    return not overlap < best


def _coco_overlaps(found: np.ndarray, true: np.ndarray, corners_as_sizes: bool) -> np.ndarray:
    """Intersection over union (found × true) as COCO's program computes it, whatever boxes hold."""
    found_boxes, true_boxes = found[:, None], true[None]
    with np.errstate(all="ignore"):
        size, other_size = (
            box[..., 2:] if corners_as_sizes else box[..., 2:] - box[..., :2] for box in (found_boxes, true_boxes)
        )
        ends = np.fmin(size + found_boxes[..., :2], other_size + true_boxes[..., :2])  # prefers a number to NaN
        sides = ends - np.fmax(found_boxes[..., :2], true_boxes[..., :2])
        shared = sides.prod(axis=2)
        union = size.prod(axis=2) + other_size.prod(axis=2) - shared
        return np.where((sides <= 0).any(axis=2), 0, shared / union)
