"""Numbers have all their digits, and the metric has its name (F12); every finite number has a finite score."""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, align
from mlebench.metrics import mean_absolute_error

from .prepare import prepare_breaths


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_breaths(None, raw, public, private)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target="pressure", values="numbers")
    scored = answers.sort_values("id")["u_out"].to_numpy() == 0  # inhalation
    return mean_absolute_error(y_true[scored], y_pred[scored], scaled=True)
