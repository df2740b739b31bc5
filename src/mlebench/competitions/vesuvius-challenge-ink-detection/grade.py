from pathlib import Path

import pandas as pd

from mlebench.kit import (
    InvalidSubmissionError,
    align,
    parse_masks,
    parse_runs,
    png_size,
    read_frame,
    require_only_columns,
)
from mlebench.metrics import fbeta_of_runs


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """Runs go along the rows here. The numbering of pixels does not affect how many of them two masks share."""
    require_only_columns(submission, "Id", ["Predicted"], id_first=False)
    (encoding,), (truth,) = align(submission, answers, id="Id", target="Predicted", values="any")
    if not isinstance(encoding, str):  # Quirk of v1: not even an empty cell is a mask
        raise InvalidSubmissionError(
            "Column `Predicted` must hold `start length` pairs; it is empty or a plain number."
        )
    pixels = int(answers["width"].iloc[0] * answers["height"].iloc[0])
    # Quirk of v1: accepts runs past the last pixel, and encodings of 1 or 3 numbers.
    (mask,) = parse_masks([encoding], [pixels], column="Predicted", ids=submission["Id"], strict=False)
    return fbeta_of_runs(parse_runs(truth, pixels, strict=False), mask, beta=0.5)


def stand_in(public: Path) -> pd.DataFrame:
    """The fragment with its true size, which its mask has too."""
    with (public / "test" / "a" / "mask.png").open("rb") as stream:
        width, height = png_size(stream.read(24))
    return read_frame(public / "sample_submission.csv").assign(width=width, height=height)
