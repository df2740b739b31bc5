"""Quirks of a grader that reward what says nothing."""

from pathlib import Path

import pandas as pd

from support.cheaters import cheater


@cheater("G14", "tgs-salt-identification-challenge")
def blank_masks(public: Path) -> pd.DataFrame:
    """No mask is a mask of the whole image where there is salt, and right where there is none."""
    return pd.read_csv(public / "sample_submission.csv").assign(rle_mask="")


@cheater("G3", "osic-pulmonary-fibrosis-progression", refused=True)
def weeks_soon_after_the_first_visit(public: Path) -> pd.DataFrame:
    """Only weeks in which little can have changed since the first visit, which is public: others need not be given."""
    first = pd.read_csv(public / "test.csv").set_index("Patient")[["Weeks", "FVC"]]
    sample = pd.read_csv(public / "sample_submission.csv")
    parts = sample["Patient_Week"].str.rsplit("_", n=1)
    since = parts.str[1].astype(int) - parts.str[0].map(first["Weeks"])
    return sample.assign(FVC=parts.str[0].map(first["FVC"]), Confidence=150)[since.between(0, 30)]
