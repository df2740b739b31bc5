"""Quirks of a grader that reward what says nothing."""

import re
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


@cheater("G20", "siim-covid19-detection")
def boxes_that_nobody_is_sure_of(public: Path) -> pd.DataFrame:
    """A true box that is missed has confidence 0, so wrong boxes below that are the only ones that come after it."""
    labels = ("negative", "typical", "indeterminate", "atypical", "none", "opacity")
    wrong = " ".join(f"{label} -1 0 0 0 0" for label in labels)
    return pd.read_csv(public / "sample_submission.csv").assign(PredictionString=wrong)


@cheater("G15", "vinbigdata-chest-xray-abnormalities-detection", refused=True)
def boxes_that_match_anything(public: Path) -> pd.DataFrame:
    """A box of `nan` matches every box of its class, wherever that is."""
    anywhere = " ".join(f"{finding} 0.5 nan nan nan nan" for finding in range(14))
    sample = pd.read_csv(public / "sample_submission.csv")
    return sample.assign(PredictionString=sample["PredictionString"] + " " + anywhere)


@cheater("G19", "hms-harmful-brain-activity-classification", refused=True)
def certain_and_otherwise_silent(public: Path) -> pd.DataFrame:
    """Where a prediction is empty nothing is wrong, so all that is said is that one class is certain."""
    sample = pd.read_csv(public / "sample_submission.csv")
    return sample[["eeg_id"]].assign(**dict.fromkeys(sample.columns[1:], "")).assign(other_vote=1.0)


@cheater("G10", "tensorflow2-question-answering")
def no_answers(public: Path) -> pd.DataFrame:
    """Saying that there is no answer is right for more than half of all rows."""
    return pd.read_csv(public / "sample_submission.csv", dtype=str).assign(PredictionString="")


@cheater("G13", "facebook-recruiting-iii-keyword-extraction")
def all_words(public: Path) -> pd.DataFrame:
    """Questions name their tags, and words that are no question's tag cost nothing."""
    test = pd.read_csv(public / "test.csv", dtype=str, na_filter=False)
    words = (test["Title"] + " " + test["Body"]).str.lower()
    return test[["Id"]].assign(Tags=[" ".join(re.findall(r"[\w.#+-]+", text)) for text in words])


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
