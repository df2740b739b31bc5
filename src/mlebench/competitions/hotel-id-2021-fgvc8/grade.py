import pandas as pd

from mlebench.kit import align
from mlebench.metrics import mean_average_precision_at_k


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # Ids are compared as text. An empty cell is no fault: it is the one guess `nan`, which is wrong.
    predicted, true = align(submission, answers, id="image", target="hotel_id", values="text")
    return mean_average_precision_at_k([{hotel} for hotel in true], [cell.split(" ") for cell in predicted], k=5)
