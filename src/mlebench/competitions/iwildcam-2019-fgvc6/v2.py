"""The sample has no column of row numbers (F5), and categories must be whole numbers (G17)."""

import pandas as pd

from mlebench.kit import Output, Raw, Table, accepts_paths, align
from mlebench.metrics import macro_f1

from .prepare import prepare_pictures


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    test = prepare_pictures(raw, public, private)
    public.write("sample_submission.csv", Table.from_columns({"Id": test["id"]}).assign(Category=0))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="Id", target="Category", values="integers")
    return macro_f1(y_true, y_pred)
