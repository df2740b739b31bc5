import pandas as pd

from mlebench.kit import align
from mlebench.metrics import mean_reciprocal_rank_at_k


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # Quirk of v1: hotels are compared as text; an empty cell is not a fault but a single wrong guess, `nan`.
    predicted, true = align(submission, answers, id="image", target="hotel_id", values="text")
    return mean_reciprocal_rank_at_k(true, (cell.split(" ") for cell in predicted), k=5)
