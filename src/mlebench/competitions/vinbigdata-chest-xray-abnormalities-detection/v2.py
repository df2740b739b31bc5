"""Every finding has a box in the truth, and boxes are compared as they are drawn (G15); images are ordered by id (L12).

Up to three radiologists drew a box around a finding. The original's test images had one box for each, on which five
radiologists agreed; here boxes that overlap are fused instead. The metric is the original's, PASCAL VOC 2010.
"""

import numpy as np
import pandas as pd

from mlebench.kit import (
    Output,
    Raw,
    Table,
    accepts_paths,
    as_text,
    column_values,
    parse_objects,
    renumber,
    rows_of_ids,
    values_of,
)
from mlebench.metrics import Objects, box_iou, voc_mean_average_precision

from .grade import COLUMN
from .prepare import CORNERS, NO_FINDING, prepare_sides, split_images, with_boxes_of_nothing

IOU = 0.4
LABELS = [str(number) for number in range(NO_FINDING + 1)]


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, test = split_images(raw)
    prepare_sides(_fused_boxes, train, np.sort(test), raw, public, private)


def _fused_boxes(boxes: Table) -> Table:
    """A box for each finding: the mean of the boxes around it, in the order of images and classes."""
    boxes = with_boxes_of_nothing(boxes)
    keys = [*zip(*(boxes[name].tolist() for name in ("image_id", "class_id", "class_name")), strict=True)]
    findings: dict[tuple, list[list[np.ndarray]]] = {}
    for key, box in zip(keys, np.column_stack([boxes[name] for name in CORNERS]), strict=True):
        _add_to_findings(box, findings.setdefault(key, []))
    rows = [(*key, *np.mean(drawn, axis=0).tolist()) for key in sorted(findings) for drawn in findings[key]]
    columns = ("image_id", "class_id", "class_name", *CORNERS)
    return Table.from_columns(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)))


def _add_to_findings(box: np.ndarray, findings: list[list[np.ndarray]]) -> None:
    """Add a box to those whose mean it overlaps most, if by more than `IOU`; otherwise it is a finding of its own."""
    means = np.array([np.mean(drawn, axis=0) for drawn in findings]).reshape(-1, len(CORNERS))
    shared = np.append(box_iou(box[None], means)[0], IOU)
    nearest = int(shared.argmax())
    if shared[nearest] > IOU:
        findings[nearest].append(box)
    else:
        findings.append([box])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    images = rows_of_ids(submission, answers.drop_duplicates("image_id"), id="image_id")
    found = parse_objects(column_values(submission, COLUMN, "words"), column=COLUMN, labels=LABELS)
    truth = Objects(
        renumber(values_of(answers["image_id"])),
        as_text(values_of(answers["class_id"])),
        answers[[*CORNERS]].to_numpy(),
        np.ones(len(answers)),
    )
    return voc_mean_average_precision(truth, found._replace(images=images[found.images]), iou=IOU)
