import pandas as pd

from mlebench.kit import InvalidSubmissionError, align
from mlebench.metrics import pooled_kendall_tau


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # Quirk of v1: orders are read as text, so an empty one is the word `nan`, which is not a cell of any notebook.
    y_pred, y_true = align(submission, answers, id="id", target="cell_order", values="text")
    # Orders are split twice, because the cells of all notebooks would take several times the memory of their text.
    pairs = zip(y_pred.tolist(), y_true.tolist(), strict=True)
    wrong = sum(sorted(order.split()) != sorted(expected.split()) for order, expected in pairs)
    if wrong:
        raise InvalidSubmissionError(
            f"Column `cell_order` must list each cell of the notebook exactly once; {wrong} rows do not."
        )
    return pooled_kendall_tau(map(str.split, y_true), map(str.split, y_pred))
