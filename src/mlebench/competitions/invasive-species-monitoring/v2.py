"""The photographs are in the archives (F2), and any finite number ranks them (G18)."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align
from mlebench.metrics import auroc

from .prepare import prepare_labels


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    photos = raw.archive("train.7z")
    for side, table in zip(("train", "test"), prepare_labels(raw, public, private), strict=True):
        names = [f"{name}.jpg" for name in table["name"].tolist()]
        public.pack(f"{side}.7z", {f"{side}/{name}": photos.file(f"train/{name}") for name in names})


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="name", target="invasive", values="numbers")
    return auroc(y_true, y_pred)
