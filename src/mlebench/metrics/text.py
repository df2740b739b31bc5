"""Metrics of predicted text."""

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist


def mean_levenshtein(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """Mean number of characters to insert, delete or replace to make one text the other; lower is better."""
    return np.float64(cpdist(y_true, y_pred, scorer=Levenshtein.distance).mean())


def word_jaccard(y_true: np.ndarray, y_pred: np.ndarray, both_empty_value: float = float("nan")) -> float:
    """Mean over texts of shared words over all words of truth and prediction; higher is better.

    Words are what stands between blanks, regardless of case; a word that a text repeats counts once. Two texts without
    words have no such share: they count `both_empty_value`.
    """
    shares = [
        len(true & predicted) / len(true | predicted) if true or predicted else both_empty_value
        for true, predicted in zip(map(_words, y_true), map(_words, y_pred), strict=True)
    ]
    return float(np.mean(shares))


def _words(text: str) -> set[str]:
    return set(text.lower().split())
