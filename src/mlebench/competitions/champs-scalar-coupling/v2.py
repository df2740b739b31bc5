"""The structures of test molecules are public: their geometry is what couplings are predicted from (F1).

Every coupling counts once, and the error of a type is at least 1e-9, so that no score is infinite (G5).
"""

import pandas as pd

from mlebench.kit import Output, Raw, accepts_paths, column_values, rows_of_ids, values_of
from mlebench.metrics import mean_log_error_of_groups

from .grade import TARGET
from .prepare import prepare_with

SMALLEST_ERROR = 1e-9  # the original's


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    prepare_with(raw, public, private, structures_of_test=True)


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    rows = rows_of_ids(submission, answers, id="id")
    y_true, types = (values_of(answers[name])[rows] for name in (TARGET, "type"))
    return mean_log_error_of_groups(y_true, column_values(submission, TARGET, "numbers"), types, floor=SMALLEST_ERROR)
