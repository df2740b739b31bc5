from pathlib import Path

import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, align, read_frame, require_columns, sorting_order, values_of
from mlebench.metrics import rmse

SCORED = ("reactivity", "deg_Mg_pH10", "deg_Mg_50C")
NOT_SCORED = ("deg_pH10", "deg_50C")  # but required


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """The mean over columns of the root mean squared error, at the positions that were measured."""
    require_columns(submission, ["id_seqpos", *SCORED, *NOT_SCORED])
    y_pred, y_true = align(submission, answers, id="id_seqpos", target=SCORED, values="any")
    keep = values_of(answers["keep"])
    measured = keep[_order(answers)]
    # Quirk of v1: the rows of predictions in the file decide which count, not their ids. So if a submission is not in
    # the sample's order, predictions for other positions are compared with the measured ones.
    counted = keep[_order(submission)]
    pairs = zip(SCORED, y_true[measured].T, y_pred[counted].T, strict=True)
    return np.float64(np.mean([rmse(truth, _numbers(name, guess)) for name, truth, guess in pairs]))


def stand_in(public: Path) -> pd.DataFrame:
    """The sample submission with the positions that were measured: the first ones of each molecule."""
    sample = read_frame(public / "sample_submission.csv")
    molecules = pd.read_json(public / "test.json", lines=True).set_index("id")
    parts = sample["id_seqpos"].str.rsplit("_", n=1)
    return sample.assign(keep=parts.str[1].astype(int) < parts.str[0].map(molecules["seq_scored"]))


def _order(table: pd.DataFrame) -> np.ndarray:
    """The order into which `align` brings rows."""
    return sorting_order(values_of(table["id_seqpos"]), "id_seqpos")


def _numbers(name: str, column: np.ndarray) -> np.ndarray:
    """Rows that do not count are not checked; if one holds text, the column's numbers are text too."""
    try:
        numbers = column.astype(float)
    except (OverflowError, ValueError):
        raise InvalidSubmissionError(f"Column `{name}` holds text or huge numbers in rows that are scored.") from None
    if not np.isfinite(numbers).all():
        raise InvalidSubmissionError(f"Column `{name}` has empty or infinite values in rows that are scored.")
    return numbers
