"""Quirks of a grader that reward what says nothing."""

from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from mlebench.kit import encode_runs
from support.cheaters import cheater

ORGANS = {"large_bowel": 14_000, "small_bowel": 19_000, "stomach": 24_000}  # how bright they are in the twin


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
    return sample.assign(FVC=parts.str[0].map(first["FVC"]), Confidence=150).loc[since.between(0, 30)]


@cheater("G4", "uw-madison-gi-tract-image-segmentation", refused=True)
def first_scan_alone(public: Path) -> pd.DataFrame:
    """Only scans that are in the file are scored, so that the work is done after the first."""
    rows = pd.read_csv(public / "test.csv")
    scans = rows["id"].str.partition("_slice_")[0]
    rows = rows.loc[scans == scans[0]]
    masks = []
    for id, organ in zip(rows["id"], rows["class"], strict=True):
        scan, number = id.split("_slice_")
        (path,) = (public / "test" / scan.split("_")[0] / scan / "scans").glob(f"slice_{number}_*.png")
        with Image.open(path) as picture:
            masks.append(" ".join(map(str, encode_runs(np.asarray(picture).T, ORGANS[organ]))))
    return rows.assign(predicted=masks)
