"""Metrics of predicted text."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def mean_levenshtein(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """Mean number of characters to insert, delete or replace to make one text the other; lower is better."""
    from rapidfuzz.distance import Levenshtein  # here, because other graders need not wait for it
    from rapidfuzz.process import cpdist

    return np.float64(cpdist(y_true, y_pred, scorer=Levenshtein.distance).mean())


def token_error_rate(y_true: Sequence[Sequence[Any]], y_pred: Sequence[Sequence[Any]]) -> float:
    """Tokens to insert, delete or replace to make predicted lists the true ones, over all true tokens; lower is better.

    Lists are counted together, so that long ones weigh most. It exceeds 1 where far too much is predicted.
    """
    from rapidfuzz.distance import Levenshtein

    edits = sum(Levenshtein.distance(true, predicted) for true, predicted in zip(y_true, y_pred, strict=True))
    return np.float64(edits) / sum(map(len, y_true))


def word_jaccard(y_true: np.ndarray, y_pred: np.ndarray, both_empty_value: float = float("nan")) -> float:
    """Mean over texts of shared words over all words of truth and prediction; higher is better.

    Words are separated by blanks and compared regardless of case; a word that a text repeats counts once. Two texts
    without words have no such share: they count `both_empty_value`.
    """
    shares = [
        len(true & predicted) / len(true | predicted) if true or predicted else both_empty_value
        for true, predicted in zip(map(_words, y_true), map(_words, y_pred), strict=True)
    ]
    return float(np.mean(shares))


def _words(text: str) -> set[str]:
    return set(text.lower().split())
