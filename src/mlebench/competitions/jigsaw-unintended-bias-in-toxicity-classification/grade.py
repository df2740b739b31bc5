from pathlib import Path

import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, align, read_frame, require_columns, sorting_order, values_of
from mlebench.metrics import bias_auroc

IDENTITIES = [
    *("black", "christian", "female", "homosexual_gay_or_lesbian", "jewish"),
    *("male", "muslim", "psychiatric_or_mental_illness", "white"),
]
HALF = 0.5  # of the annotators: from this share on a comment is toxic, or mentions an identity


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    require_columns(submission, ["id"])
    # Quirk of v1: the answers are a submission too; their column `toxicity` serves as the predictions.
    given = [name for name in ("prediction", "toxicity") if name in submission]
    if len(given) != 1:
        raise InvalidSubmissionError("Submission must have one column of predictions, named `prediction`.")
    predictions = submission.rename(columns={given[0]: "toxicity"})
    y_score, toxicity = align(predictions, answers, id="id", target="toxicity", values="any")
    if y_score.dtype.kind == "O" and any(type(value) in (str, int) for value in y_score):
        raise InvalidSubmissionError(f"Column `{given[0]}` must hold numbers; it also holds text or huge numbers.")
    subgroups = answers[IDENTITIES].to_numpy(dtype=float)[sorting_order(values_of(answers["id"]), "id")]
    # Quirk of v1: a prediction only counts as toxic or not, and an empty one as not.
    return bias_auroc(toxicity >= HALF, y_score.astype(float), subgroups >= HALF, score_threshold=HALF)


def stand_in(public: Path) -> pd.DataFrame:
    """The comments to predict, every second of them toxic, and every second pair mentioning all identities."""
    ids = read_frame(public / "sample_submission.csv")[["id"]]
    rows = np.arange(len(ids))
    return ids.assign(toxicity=rows % 2, **dict.fromkeys(IDENTITIES, rows // 2 % 2))
