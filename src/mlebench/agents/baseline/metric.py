"""Guesses the metric from the words of the description, and scores predictions by it."""

import re

import numpy as np
from sklearn import metrics

# The first of these that a description names is taken. `label`: the best single guess counts; `probability`: how sure;
# `number`: how near; `ranked`: guesses in order; `other`: nothing that this agent's models predict.
WORDS = (
    ("rmsle", "number", r"\bRMSLE\b|root[- ]mean[- ]squared?[- ]log"),
    ("rmse", "number", r"\b(MC)?RMSE\b|root[- ]mean[- ]squared?[- ]error|root of the mean squared|mean squared error"),
    ("mae", "number", r"\bMAE\b|mean absolute error"),
    ("log loss", "probability", r"log(arithmic)?[- ]?loss|cross[- ]entropy|kullback"),
    ("auc", "probability", r"area under|\bAU(RO)?C\b|\bROC\b"),
    ("kappa", "label", r"kappa"),
    ("mcc", "label", r"matthews"),
    ("spearman", "number", r"spearman"),
    ("pearson", "number", r"pearson"),
    ("map", "ranked", r"mean average precision|\bMAP@"),
    ("f1", "label", r"\bF-?1\b|f-?measure|f-?score|\bF_?\{?1"),
    ("accuracy", "label", r"accura|top-1 error|classification error"),
    ("jaccard", "text", r"jaccard"),
    ("edit distance", "other", r"levenshtein|edit distance|kendall"),
    ("overlap", "other", r"\bdice\b|\bIoU\b|intersection over union"),
)
BOXES = r"\bIoU\b|bounding box|overlap"
LOWER_IS_BETTER = ("rmsle", "rmse", "mae", "log loss")
TINY = 1e-6


class Metric:
    """A name, and the kind of prediction it needs."""

    def __init__(self, name: str, wants: str):
        self.name, self.wants = name, wants

    @property
    def higher_is_better(self) -> bool:
        return self.name not in LOWER_IS_BETTER


def from_description(text: str) -> Metric:
    """The first metric named in the section on evaluation, or else anywhere in the text; `unknown` if there is none."""
    section = re.search(r"^#+[^\n]*(evaluation|metric|scor)[^\n]*\n(.*?)(?=^#|\Z)", text, re.I | re.M | re.S)
    for part in (section[2] if section else "", text):
        matches = [
            (match.start(), name, wants) for name, wants, words in WORDS if (match := re.search(words, part, re.I))
        ]
        if matches:
            _, name, wants = min(matches)
            return Metric(name, "other" if wants == "ranked" and re.search(BOXES, part, re.I) else wants)
    return Metric("unknown", "unknown")


def used_for(kind: str, metric: Metric) -> Metric:
    """The metric that a model of this kind is chosen by."""
    fitting = {
        "classes": ("log loss", "auc", "kappa", "mcc", "f1", "accuracy", "map"),
        "flags": ("log loss", "auc", "f1"),
        "numbers": ("rmsle", "rmse", "mae", "spearman", "pearson", "auc", "kappa"),
    }
    standard = {"classes": "log loss", "flags": "log loss", "numbers": "rmse"}
    return metric if metric.name in fitting[kind] else Metric(standard[kind], "")


def score(metric: Metric, kind: str, truth: np.ndarray, predicted: np.ndarray) -> float:
    """How good a prediction is: a matrix with a column for each class, flag or number."""
    if kind == "classes":
        return _of_classes(metric.name, truth, predicted)
    columns = [
        _of_column(metric.name, truth[:, column], predicted[:, column])
        for column in range(truth.shape[1])
        if metric.name not in ("auc", "spearman", "pearson") or len(np.unique(truth[:, column])) > 1
    ]
    return float(np.mean(columns)) if columns else float("nan")


def _of_classes(name: str, truth: np.ndarray, predicted: np.ndarray) -> float:
    number = predicted.shape[1]
    if name == "auc" and number == 2:
        return float(metrics.roc_auc_score(truth, predicted[:, 1])) if len(np.unique(truth)) == 2 else float("nan")
    if name in ("log loss", "auc"):
        value = -np.mean(np.log(np.clip(predicted[np.arange(len(truth)), truth], TINY, 1)))
        return float(value if name == "log loss" else -value)
    if name == "map":
        rank = (predicted > predicted[np.arange(len(truth)), truth][:, None]).sum(1)
        return float(np.mean(np.where(rank < 5, 1 / (rank + 1), 0)))
    guess = guesses(name, predicted)
    if name == "kappa":
        weights = "quadratic" if len(np.unique([truth, guess])) > 1 else None
        return float(np.nan_to_num(metrics.cohen_kappa_score(truth, guess, weights=weights)))
    if name == "mcc":
        return float(metrics.matthews_corrcoef(truth, guess))
    if name == "f1":
        return float(metrics.f1_score(truth, guess, average="binary" if number == 2 else "macro", zero_division=0))
    return float(np.mean(truth == guess))


def guesses(name: str, predicted: np.ndarray) -> np.ndarray:
    """The class for each row. Kappa punishes by distance, so it gets the class nearest to the expected one."""
    if name == "kappa":
        return np.rint(predicted @ np.arange(predicted.shape[1]) / predicted.sum(1)).astype(int)
    return predicted.argmax(1)


def _of_column(name: str, truth: np.ndarray, predicted: np.ndarray) -> float:
    if name == "auc":
        return float(metrics.roc_auc_score(truth >= 0.5, predicted)) if len({*(truth >= 0.5)}) == 2 else 0.5
    if name == "log loss":
        inside = np.clip(predicted, TINY, 1 - TINY)
        return float(-np.mean(truth * np.log(inside) + (1 - truth) * np.log(1 - inside)))
    if name == "f1":
        return float(metrics.f1_score(truth >= 0.5, predicted >= 0.5, zero_division=0))
    if name == "kappa":
        rounded = np.rint(truth).astype(int), np.rint(predicted).astype(int)
        return float(np.nan_to_num(metrics.cohen_kappa_score(*rounded, weights="quadratic")))
    if name in ("spearman", "pearson"):
        if name == "spearman":
            truth, predicted = _ranks(truth), _ranks(predicted)
        return 0.0 if np.ptp(predicted) < TINY else float(np.corrcoef(truth, predicted)[0, 1])
    if name == "mae":
        return float(np.mean(np.abs(truth - predicted)))
    if name == "rmsle":
        truth, predicted = np.log1p(np.clip(truth, 0, None)), np.log1p(np.clip(predicted, 0, None))
    return float(np.sqrt(np.mean((truth - predicted) ** 2)))


def _ranks(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]
