"""All answers to a question are on one side of the split (S3).

Pairs are matched by qa_id (G6), values are finite numbers (X1), and a constant column has correlation 0 (G19).
"""

import numpy as np
import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align, join_text, renumber, split_whole_groups
from mlebench.metrics import mean_column_spearman

from .prepare import TARGETS, write_parts


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    table = raw.table("train.csv")
    questions = join_text(table["question_title"], "\n", table["question_body"])
    train, test = split_whole_groups(np.arange(len(table)), questions, test_size=0.1, seed=0)
    spelling = table["question_type_spelling"]
    if not spelling[test].any():  # few questions are about spelling: then the first one of them changes sides
        changing = questions[train] == questions[train[np.flatnonzero(spelling[train])[0]]]
        train, test = train[~changing], np.concatenate([test, train[changing]])
    write_parts(table, train, test, public, private)
    private.write(
        "groups.csv", table.take(test).select("qa_id").rename({"qa_id": "id"}).assign(group=renumber(questions[test]))
    )


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="qa_id", target=TARGETS, values="numbers")
    return mean_column_spearman(y_true, y_pred, undefined_value=0)
