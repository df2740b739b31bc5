import random
from collections.abc import Sequence

import numpy as np

from mlebench.kit import Output, Raw, Table, accepts_paths, is_in, join_text

# Quirk of v1: a tenth of everything is for training; it was meant to be the other way round.
SHARE = 0.1
LABELS = ("patient_overall", "C1", "C2", "C3", "C4", "C5", "C6", "C7")


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    studies, boxes = raw.table("train.csv"), raw.table("train_bounding_boxes.csv")
    segmented = segmented_studies(raw)
    chosen, with_boxes, with_segments = _choose(studies["StudyInstanceUID"].tolist(), boxes, segmented)
    in_train = is_in(studies["StudyInstanceUID"], chosen)
    prepare_studies(studies.where(in_train), studies.where(~in_train), with_boxes, with_segments, raw, public, private)


def segmented_studies(raw: Raw) -> list[str]:
    """The ids of studies with a segmentation, in order."""
    return sorted(file.path.stem for file in raw.files("segmentations/*.nii"))


def prepare_studies(
    train: Table,
    test: Table,
    with_boxes: Sequence[str],
    with_segments: Sequence[str],
    raw: Raw,
    public: Output,
    private: Output,
) -> None:
    """Write both sides, and of the studies for training the boxes and segmentations that are named."""
    answers = _one_row_a_label(test)

    public.write("train.csv", train)
    public.write(
        "train_bounding_boxes.csv", raw.table("train_bounding_boxes.csv").where_in("StudyInstanceUID", with_boxes)
    )
    public.write("test.csv", answers.drop("fractured"))
    public.write("sample_submission.csv", answers.select("row_id").assign(fractured=0.5))
    public.place_each((raw.file(f"segmentations/{id}.nii"), f"segmentations/{id}.nii") for id in with_segments)
    for folder, part in (("train_images", train), ("test_images", test)):
        for id in part["StudyInstanceUID"]:
            public.place_tree(raw, f"train_images/{id}", f"{folder}/{id}")
    private.write("answers.csv", answers)


def _choose(studies: list[str], boxes: Table, segmented: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Studies for training, and which of them were chosen with their boxes and which with their segmentations.

    A tenth is drawn from those that have both, then from those that have one of them, so that all tenths come out
    right.
    """
    boxed = sorted(set(boxes["StudyInstanceUID"]))
    both = sorted(set(boxed) & set(segmented))
    rng = random.Random(0)
    from_both = rng.sample(both, round(len(both) * SHARE))

    def draw(ids: list[str], others: list[str], already: list[str]) -> list[str]:
        excluded = set(others)
        return rng.sample([id for id in ids if id not in excluded], round(len(ids) * SHARE) - len(already))

    from_segmented = draw(segmented, both, from_both)
    from_boxed = draw(boxed, both, from_both)
    chosen = [*from_both, *from_segmented, *from_boxed]
    chosen += draw(studies, chosen, chosen)
    return chosen, from_both + from_boxed, from_both + from_segmented


def _one_row_a_label(studies: Table) -> Table:
    """Label by label, a row for each study."""
    ids = np.tile(studies["StudyInstanceUID"], len(LABELS))
    kinds = np.repeat(np.array(LABELS, dtype=object), len(studies))
    return Table.from_columns(
        {
            "StudyInstanceUID": ids,
            "prediction_type": kinds,
            "fractured": np.concatenate([studies[label] for label in LABELS]),
            "row_id": join_text(ids, "_", kinds),
        }
    )
