"""Text such as NA and null is text, and two empty selections are equal (G22)."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align
from mlebench.metrics import word_jaccard

from .prepare import prepare_with_text


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_with_text(["text", "selected_text"], raw, public, private)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="textID", target="selected_text", values="text")
    return word_jaccard(y_true, y_pred, both_empty_value=1)
