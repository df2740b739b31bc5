import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, align
from mlebench.metrics import token_error_rate


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # As text, because pandas reads a column as numbers if each of its sequences is a single one.
    predicted, true = align(submission, answers, id="Id", target="Sequence", values="text")
    return token_error_rate(_gestures(true), _gestures(predicted))


def _gestures(sequences: np.ndarray) -> list[list[int]]:
    try:
        return [list(map(int, sequence.split())) for sequence in sequences.tolist()]
    except ValueError as error:
        raise InvalidSubmissionError(
            f"Column `Sequence` must hold whole numbers with blanks between them, in every row: {error}."
        ) from None
