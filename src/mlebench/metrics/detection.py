"""Metrics of things found in images."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


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


def points_in_boxes_f1(boxes: Sequence[Boxes], points: Sequence[Points]) -> float:
    """F1 over all images of points that are to lie in boxes of their label; higher is better, 0 where none does.

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
