"""Questions about one context are on one side (S16). Answers such as NA and null are text, also numbers (G22)."""

import numpy as np
import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align, renumber, split_whole_groups
from mlebench.metrics import word_jaccard

from .prepare import write_sides


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    questions = raw.table("train.csv", text=["context", "question", "answer_text"])
    contexts = renumber(questions["context"])
    train, test = split_whole_groups(questions, contexts, test_size=0.1, seed=0)
    write_sides(train, test, public, private)
    groups = questions.select("id").assign(group=contexts)
    private.write("groups.csv", groups.where_in("id", test["id"]))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target="PredictionString", values="text")
    return np.float64(word_jaccard(y_true, y_pred, both_empty_value=1))
