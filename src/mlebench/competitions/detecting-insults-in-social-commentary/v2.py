"""The comments to label are those of the leaderboard, the verification set; all earlier ones are for training (T1).

Each has an id, so that repeated comments keep their own labels (G25), and any finite number ranks them (G18).
"""

import pandas as pd

from mlebench.kit import Output, Raw, Table, accepts_paths, align
from mlebench.metrics import auroc

COLUMNS = ("Insult", "Date", "Comment")


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    train, opened, later = (
        raw.table(name, text=["Date", "Comment"])
        for name in ("train.csv", "test_with_solutions.csv", "impermium_verification_labels.csv")
    )
    public.write("train.csv", Table.concat([train.select(*COLUMNS), opened.select(*COLUMNS)]))
    public.write("test.csv", later.select("id", "Date", "Comment"))
    public.write("sample_submission_null.csv", later.select("id").assign(Insult=0))
    private.write("test.csv", later.select("id", "Insult", "Comment"))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target="Insult", values="numbers")
    return auroc(y_true, y_pred)
