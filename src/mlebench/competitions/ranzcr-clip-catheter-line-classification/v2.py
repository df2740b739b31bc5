"""Pictures of one patient are on one side (S6); all of the original's labels count (G2); any number ranks (G18)."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align, split_whole_groups
from mlebench.metrics import mean_column_auroc

from .grade import GRADED
from .prepare import prepare_sides

LABELS = (*GRADED, "CVC - Normal", "Swan Ganz Catheter Present")


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    rows = raw.table("train.csv")
    train, test = split_whole_groups(rows, rows["PatientID"], test_size=0.1, seed=0)
    prepare_sides(train, test, ["PatientID"], raw, public, private)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="StudyInstanceUID", target=LABELS, values="numbers")
    return mean_column_auroc(y_true, y_pred)
