from collections import Counter
from collections.abc import Callable
from types import NoneType
from typing import Any

import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, split_rows

TRAIN, TEST = "iwildcam2020_train_annotations.json", "iwildcam2020_test_information.json"
DETECTIONS = "iwildcam2020_megadetector_results.json"
TEST_SHARE = 0.22
CATEGORIES = 676  # numbers that the sample submission chooses from
NAN = float("nan")
Record = dict[str, Any]


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    answers = prepare_cameras(_share_with_test_counted_twice, raw, public, private)
    guesses = np.random.RandomState(0).randint(0, CATEGORIES, len(answers))
    public.write("sample_submission.csv", answers.assign(Category=guesses))


def _share_with_test_counted_twice(tested: int, images: int) -> float:
    return tested / (images + tested)  # Quirk of v1


def prepare_cameras(share: Callable[[int, int], float], raw: Raw, public: Output, private: Output) -> Table:
    """Write all but the sample submission; return the answers. `share` makes one of two numbers of images."""
    labelled, unlabelled = raw.json(TRAIN), raw.json(TEST)
    images, annotations = _completed(labelled["images"]), _completed(labelled["annotations"])
    cameras = _test_cameras([image["location"] for image in images], share)
    train = [image for image in images if image["location"] not in cameras]
    test = [image for image in images if image["location"] in cameras]
    truth = _of_images(annotations, test)
    answers = Table.from_columns(
        {"Id": [row["image_id"] for row in truth], "Category": [row["category_id"] for row in truth]}
    )

    new_train = {"annotations": _of_images(annotations, train), "images": train}
    for name, new, old in ((TRAIN, new_train, labelled), (TEST, {"images": test}, unlabelled)):
        public.write_json(name, {**new, "categories": _completed(old["categories"]), "info": old["info"]})
    public.place(raw.file(DETECTIONS), DETECTIONS)
    for folder, side in (("train", train), ("test", test)):
        public.place_each((raw.file(f"train/{image['id']}.jpg"), f"{folder}/{image['id']}.jpg") for image in side)
    private.write("answers.csv", answers)
    return answers


def _test_cameras(locations: list[Any], share: Callable[[int, int], float]) -> set[Any]:
    """A random part of the cameras, adjusted until it has the wanted share of images: the last ones change sides."""
    sizes = Counter(locations)
    train, test = split_rows(list(sizes), test_size=TEST_SHARE, seed=0)

    def share_of_test() -> float:
        return share(sum(sizes[camera] for camera in test), len(locations))

    while share_of_test() < TEST_SHARE:
        test.append(train.pop())
    while share_of_test() > TEST_SHARE:
        train.append(test.pop())
    return set(test)


def _of_images(annotations: list[Record], images: list[Record]) -> list[Record]:
    ids = {image["id"] for image in images}
    return [annotation for annotation in annotations if annotation["image_id"] in ids]


def _completed(records: list[Record]) -> list[Record]:
    """Records as a data frame returns them: each has all fields, in the order in which these first appear.

    What a record lacks is NaN, and numbers in a field with gaps become floats.
    """
    completed: list[Record] = [{} for _ in records]
    for field in dict.fromkeys(field for record in records for field in record):
        values = [record.get(field, NAN) for record in records]
        if _are_numbers_with_gaps(values):
            values = [NAN if value is None else float(value) for value in values]
        for record, value in zip(completed, values, strict=True):
            record[field] = value
    return completed


def _are_numbers_with_gaps(values: list[Any]) -> bool:
    """Whether a data frame turns them into floats; a field of whole numbers, or of nothing at all, stays as it is."""
    kinds = {type(value) for value in values}
    return kinds <= {int, float, NoneType} and kinds not in ({int}, {NoneType})
