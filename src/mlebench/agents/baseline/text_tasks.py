"""Targets that are texts: copied from another column, or looked up by its value, whichever is right more often."""

from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np
import pandas as pd
from task import PredictionTask

Guess = Callable[[pd.DataFrame], list[str]]


def ways(task: PredictionTask, train: pd.DataFrame, truth: list[str]) -> dict[str, Guess]:
    """Each way to fill the cell, by name."""
    guessers: dict[str, Guess] = {}
    for name in task.inputs:
        if all(isinstance(cell, str) for cell in train[name].iloc[:1000]):
            guessers[f"copy {name}"] = lambda frame, name=name: list(frame[name])
            seen: dict[str, Counter[str]] = defaultdict(Counter)
            for cell, text in zip(train[name], truth, strict=True):
                seen[cell][text] += 1
            best = {cell: texts.most_common(1)[0][0] for cell, texts in seen.items()}
            guessers[f"look up {name}"] = lambda frame, name=name, best=best: [best.get(c, c) for c in frame[name]]
    return guessers


def likeness(truth: list[str], guesses: list[str], by_words: bool) -> float:
    """The share of guesses that are right, or the mean share of common words."""
    if not by_words:
        return float(np.mean([a == b for a, b in zip(truth, guesses, strict=True)]))
    pairs = [(set(a.lower().split()), set(b.lower().split())) for a, b in zip(truth, guesses, strict=True)]
    return float(np.mean([len(a & b) / len(a | b) if a | b else 1.0 for a, b in pairs]))
