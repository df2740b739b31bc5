"""Quirks of a grader that reward what says nothing."""

from pathlib import Path

import pandas as pd

from support.cheaters import cheater


@cheater("G14", "tgs-salt-identification-challenge")
def blank_masks(public: Path) -> pd.DataFrame:
    """No mask is a mask of the whole image where there is salt, and right where there is none."""
    return pd.read_csv(public / "sample_submission.csv").assign(rle_mask="")


@cheater("G10", "tensorflow2-question-answering")
def no_answers(public: Path) -> pd.DataFrame:
    """Saying that there is no answer is right for more than half of all rows."""
    return pd.read_csv(public / "sample_submission.csv", dtype=str).assign(PredictionString="")
