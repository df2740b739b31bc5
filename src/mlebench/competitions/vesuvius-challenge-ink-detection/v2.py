"""Masks are read strictly (G16), and one without pixels may be an empty cell (G23)."""

import pandas as pd

from mlebench.kit import align, parse_masks, parse_runs
from mlebench.metrics import fbeta_of_runs


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    encodings, (truth,) = align(submission, answers, id="Id", target="Predicted", values="text")
    pixels = int(answers["width"].iloc[0] * answers["height"].iloc[0])
    (mask,) = parse_masks(encodings, [pixels], column="Predicted", ids=submission["Id"])
    return fbeta_of_runs(parse_runs(truth, pixels), mask, beta=0.5)
