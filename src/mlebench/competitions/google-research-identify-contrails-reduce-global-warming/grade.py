import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, align, parse_masks, parse_runs
from mlebench.metrics import global_dice_of_runs


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """The Dice coefficient of all images together. Quirk of v1: NaN, and valid, if neither side has a pixel."""
    numbered = answers.assign(encoded_pixels=range(len(answers)))
    encodings, rows = align(submission, numbered, id="record_id", target="encoded_pixels", values="any")
    if not all(isinstance(encoding, str) for encoding in encodings):  # Quirk of v1: an empty cell is not a mask
        raise InvalidSubmissionError(
            "Column `encoded_pixels` must hold `start length` pairs, or - for no pixel; it has empty cells or numbers."
        )
    images = answers.iloc[rows]
    pixels = images["height"] * images["width"]
    # Quirk of v1: accepts runs past the last pixel, and encodings of 1 or 3 numbers.
    masks = parse_masks(
        map(_without_dash, encodings), pixels, column="encoded_pixels", ids=images["record_id"], strict=False
    )
    true_masks = [
        parse_runs(_without_dash(encoding), size, strict=False)
        for encoding, size in zip(images["encoded_pixels"], pixels, strict=True)
    ]
    return np.float64(global_dice_of_runs(masks, true_masks))


def _without_dash(encoding: str) -> str:
    return "" if encoding == "-" else encoding
