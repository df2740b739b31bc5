from collections.abc import Callable

import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, is_in, join_text, split_rows, unique

NO_FINDING = 14
CORNERS = ("x_min", "y_min", "x_max", "y_max")


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_sides(_first_boxes, *split_images(raw), raw, public, private)


def split_images(raw: Raw) -> tuple[np.ndarray, np.ndarray]:
    return split_rows(unique(raw.table("train.csv")["image_id"]), test_size=0.1, seed=0)


def prepare_sides(
    truth_of: Callable[[Table], Table], train: np.ndarray, test: np.ndarray, raw: Raw, public: Output, private: Output
) -> None:
    """Write everything; `truth_of` makes the answers of what radiologists drew in test images."""
    boxes = raw.table("train.csv")
    answers = truth_of(boxes.where(is_in(boxes["image_id"], test)))

    public.write("train.csv", boxes.where(is_in(boxes["image_id"], train)))
    sample = Table.from_columns({"image_id": test})
    public.write("sample_submission.csv", sample.assign(PredictionString="14 1 0 0 1 1"))
    for folder, images in (("train", train), ("test", test)):
        public.place_each((raw.file(f"train/{id}.dicom"), f"{folder}/{id}.dicom") for id in images)
    private.write("answers.csv", answers)
    private.write("gold_submission.csv", _gold(answers))


def _first_boxes(boxes: Table) -> Table:
    """The first box of each image and class, whichever radiologist drew it."""
    first = boxes.group_first("image_id", "class_id")
    return with_boxes_of_nothing(first.select("image_id", "class_id", "class_name", "rad_id", *CORNERS))


def with_boxes_of_nothing(boxes: Table) -> Table:
    """Give images in which nothing was found a box of one pixel."""
    nothing = boxes["class_id"] == NO_FINDING
    corners = {name: np.nan_to_num(boxes[name], nan=0) for name in CORNERS}
    corners |= {name: np.where(nothing, 1.0, corners[name]) for name in ("x_max", "y_max")}
    return boxes.assign(corners)


def _gold(answers: Table) -> Table:
    """A perfect submission."""
    numbers = [part for name in CORNERS for part in (" ", answers[name])]
    found: dict[str, list[str]] = {}
    for image, box in zip(answers["image_id"], join_text(answers["class_id"], " 1.0", *numbers), strict=True):
        found.setdefault(image, []).append(box)
    return Table.from_columns({"image_id": list(found), "PredictionString": list(map(" ".join, found.values()))})
