from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, RunLengths, align, parse_runs, read_frame
from mlebench.metrics import dice_of_runs


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """The mean Dice coefficient of the slides; masks stay runs, since a slide may have gigapixels."""
    numbered = answers.assign(predicted=range(len(answers)))
    encodings, rows = align(submission, numbered, id="id", target="predicted", values="any")
    slides = answers.iloc[rows]
    pixels = slides["width_pixels"] * slides["height_pixels"]
    scores = [
        dice_of_runs(_predicted(id, encoding, size), parse_runs(truth, size, strict=False), both_empty_value=1.0)
        for id, encoding, truth, size in zip(slides["id"], encodings, slides["encoding"], pixels, strict=True)
    ]
    return np.float64(np.mean(scores))


def stand_in(public: Path) -> pd.DataFrame:
    """The slides to predict with their true sizes, and one pixel as each one's mask."""
    information = read_frame(public / "HuBMAP-20-dataset_information.csv")
    sizes = information[["width_pixels", "height_pixels"]].set_axis(information["image_file"].str[: -len(".tiff")])
    ids = read_frame(public / "sample_submission.csv")["id"]
    return sizes.loc[ids].rename_axis("id").reset_index().assign(encoding="1 1")


def _predicted(id: str, encoding: Any, pixels: int) -> RunLengths:
    if pd.isna(encoding):
        encoding = ""  # an empty cell is an empty mask
    if not isinstance(encoding, str):
        raise InvalidSubmissionError("Column `predicted` must hold `start length` pairs; it holds plain numbers.")
    try:
        # Quirk of v1: accepts runs past the last pixel, and encodings of 1 or 3 numbers.
        return parse_runs(encoding, pixels, strict=False)
    except ValueError as error:
        raise InvalidSubmissionError(f"Column `predicted`, slide {id}: {error}.") from None
