import pandas as pd

from mlebench.kit import InvalidSubmissionError, align
from mlebench.metrics import pooled_kendall_tau


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # Quirk of v1: orders are read as text, so that an empty one is the word `nan`, which is no cell of any notebook.
    y_pred, y_true = align(submission, answers, id="id", target="cell_order", values="text")
    predicted, true = ([order.split() for order in orders] for orders in (y_pred, y_true))
    wrong = sum(sorted(cells) != sorted(expected) for cells, expected in zip(predicted, true, strict=True))
    if wrong:
        raise InvalidSubmissionError(
            f"Column `cell_order` must list each cell of the notebook exactly once; {wrong} rows do not."
        )
    return pooled_kendall_tau(true, predicted)
