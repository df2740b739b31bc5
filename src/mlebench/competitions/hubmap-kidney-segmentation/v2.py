"""Outlines of test slides are secret (L5), their patients have no others (S22), and masks are read strictly (G16)."""

import numpy as np
import pandas as pd

from mlebench.kit import (
    Output,
    Raw,
    accepts_paths,
    align,
    is_in,
    join_text,
    parse_masks,
    parse_runs,
    split_whole_groups,
)
from mlebench.metrics import dice_of_runs

from .prepare import FILES, information_of, prepare_slides

OUTLINES = "glomerulus_segmentation_file"  # the column with the names of their files


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    slides = raw.table("train.csv")
    information = information_of(slides, raw)
    patient_of = dict(zip(information["image_file"], information["patient_number"], strict=True))
    patients = [patient_of[f"{id}.tiff"] for id in slides["id"]]
    train, test = split_whole_groups(slides, patients, test_size=raw.scaled(3), seed=0)
    in_test = is_in(information["image_file"], join_text(test["id"], ".tiff"))
    shown = information.assign({OUTLINES: np.where(in_test, "", information[OUTLINES])})
    prepare_slides(train, test, shown, FILES, raw, public, private)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    numbered = answers.assign(predicted=range(len(answers)))
    encodings, rows = align(submission, numbered, id="id", target="predicted", values="any")
    slides = answers.iloc[rows]
    pixels = slides["width_pixels"] * slides["height_pixels"]
    masks = parse_masks(encodings, pixels, column="predicted", ids=slides["id"])
    truth = (parse_runs(encoding, size) for encoding, size in zip(slides["encoding"], pixels, strict=True))
    scores = [dice_of_runs(mask, true, both_empty_value=1) for mask, true in zip(masks, truth, strict=True)]
    return np.float64(np.mean(scores))
