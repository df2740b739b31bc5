"""The sample has a submission's columns (F15), and masks are read strictly (G16).

A mask without pixels may be an empty cell (G23). If no image has a pixel on either side, the score is 1 (G19).
"""

from pathlib import Path

import numpy as np
import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align, npy_shape, parse_masks, parse_runs, read_frame
from mlebench.metrics import global_dice_of_runs

from .prepare import BANDS, NPY_HEADER, prepare_records, random_guesses


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    answers = prepare_records(raw, public, private).select("record_id", "encoded_pixels")
    public.write("sample_submission.csv", answers.assign(encoded_pixels=random_guesses(len(answers))))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    answers = answers.sort_values("record_id")
    encodings, truth = align(submission, answers, id="record_id", target="encoded_pixels", values="text")
    pixels = answers["height"] * answers["width"]
    masks = parse_masks(encodings, pixels, column="encoded_pixels", ids=answers["record_id"])
    true_masks = [parse_runs(encoding, size) for encoding, size in zip(truth, pixels, strict=True)]
    return np.float64(global_dice_of_runs(masks, true_masks, both_empty_value=1))


def stand_in(public: Path) -> pd.DataFrame:
    """The sample with the true sizes of the images, which anybody can see."""
    sample = read_frame(public / "sample_submission.csv", dtype={"record_id": str})
    sizes = [_size(public / "test" / id / BANDS[0]) for id in sample["record_id"]]
    return sample.assign(height=[size[0] for size in sizes], width=[size[1] for size in sizes])


def _size(band: Path) -> tuple[int, ...]:
    with band.open("rb") as stream:
        return npy_shape(stream.read(NPY_HEADER))
