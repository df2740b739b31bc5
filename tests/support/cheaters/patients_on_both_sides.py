"""Patients who are on both sides of a split."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from support.cheaters import cheater

RIBS, ROWS = slice(-8, None), 4  # columns and rows of a chest X-ray in the twin that show a rib, or its absence


@cheater("S6", "ranzcr-clip-catheter-line-classification")
def findings_of_the_same_ribs(public: Path) -> pd.DataFrame | None:
    """A patient is known by the ribs, and findings stay."""
    train = pd.read_csv(public / "train.csv")
    sample = pd.read_csv(public / "sample_submission.csv")
    id, *labels = sample.columns
    known: dict[str, list[np.ndarray]] = {}
    for name, findings in zip(train[id], train[labels].to_numpy(), strict=True):
        known.setdefault(_ribs(public / "train" / f"{name}.jpg"), []).append(findings)
    patients = [_ribs(public / "test" / f"{name}.jpg") for name in sample[id]]
    if known.keys().isdisjoint(patients):
        return None
    predicted = [np.mean(known.get(patient, [np.zeros(len(labels))]), axis=0) for patient in patients]
    return sample.assign(**dict(zip(labels, np.transpose(predicted), strict=True)))


@cheater("S8", "siim-isic-melanoma-classification")
def melanomas_of_the_same_patient(public: Path) -> pd.DataFrame | None:
    train, test = pd.read_csv(public / "train.csv"), pd.read_csv(public / "test.csv")
    targets: dict[str, list[int]] = {}
    for patient, target in zip(train["patient_id"], train["target"], strict=True):
        targets.setdefault(patient, []).append(target)
    if targets.keys().isdisjoint(test["patient_id"]):
        return None
    typical = train["target"].tolist()
    shares = [np.mean(targets.get(patient, typical)) for patient in test["patient_id"]]
    return pd.DataFrame({"image_name": test["image_name"], "target": shares})


@cheater("S7", "hms-harmful-brain-activity-classification")
def votes_on_the_same_patient(public: Path) -> pd.DataFrame:
    """What experts say of a patient's recordings stays the same; of others, they may say what they said of any."""
    train, test = pd.read_csv(public / "train.csv"), pd.read_csv(public / "test.csv")
    votes = [name for name in train.columns if name.endswith("_vote")]
    sums: Any = train.groupby("patient_id")[votes].sum()
    known = sums.reindex(test["patient_id"]).to_numpy()
    guesses = train[votes].sample(len(test), replace=True, random_state=0).to_numpy()
    counts = np.where(np.isnan(known), guesses, known)
    return test[["eeg_id"]].assign(**dict(zip(votes, (counts / counts.sum(axis=1, keepdims=True)).T, strict=True)))


def _ribs(path: Path) -> str:
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("L"), dtype=float)
    light = pixels[:, RIBS].mean(axis=1).reshape(-1, ROWS).mean(axis=1) > np.median(pixels) + 35
    return "".join(map(str, light.astype(int)))
