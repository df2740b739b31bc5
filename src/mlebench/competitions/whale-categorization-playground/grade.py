import pandas as pd

from mlebench.kit import align, require_only_columns
from mlebench.metrics import mean_reciprocal_rank_at_k


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    require_only_columns(submission, "Image", ["Id"], id_first=False)
    # Quirk of v1: an empty cell is not a fault but a single wrong guess, `nan`.
    predicted, true = align(submission, answers, id="Image", target="Id", values="text")
    return mean_reciprocal_rank_at_k(true, (cell.split(" ") for cell in predicted), k=5)
