"""Turns cells into something a model can learn, and its predictions back into cells of the sample."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import metric
import numpy as np
import pandas as pd
from task import PredictionTask, UnclearError

MOST_TOKENS = 500
NUMBER_METRICS = ("number", "unknown")
Cells = dict[str, list[str]]


@dataclass
class AnswerFormat:
    """What a model learns (`classes`, `flags` or `numbers`), and how its predictions for each id are written."""

    kind: str
    width: int
    truth: np.ndarray
    write: Callable[[np.ndarray], Cells]

    def learned_from(self, rows: np.ndarray) -> "AnswerFormat":
        return AnswerFormat(self.kind, self.width, self.truth[rows], self.write)


def answer_format(task: PredictionTask) -> AnswerFormat:
    if task.is_by_class:
        return _class_columns(task)
    if len(task.targets) > 1:
        return _many_columns(task)
    cells = task.truth[task.targets[0]].astype(str)
    numbers = pd.to_numeric(cells, errors="coerce")
    values = sorted(cells.unique(), key=lambda value: (pd.to_numeric(value, errors="coerce"), value))
    sample = task.sample[task.targets[0]]
    if len(values) == 2:
        return _two_classes(task, cells, values, pd.to_numeric(sample, errors="coerce"))
    if tokens := _tokens(cells, len(values)):
        return _token_lists(task, cells, tokens)
    guesses = 1 if sample.isin(values).all() else int(sample.str.split().str.len().median())
    if guesses > 1 and task.metric.wants != "number":
        return _classes(task, cells, values, guesses)
    if numbers.notna().all() and not _are_classes(task, numbers, values):
        return _numbers(task, numbers.to_numpy(np.float64)[:, None], are_shares=False)
    if len(values) > 200 and len(values) > 0.1 * len(cells) and not numbers.notna().all():
        raise UnclearError(f"{len(values)} different texts in {len(cells)} rows are too many classes")
    return _classes(task, cells, values, 1)


def _are_classes(task: PredictionTask, numbers: pd.Series, values: list[str]) -> bool:
    if (numbers % 1 != 0).any():
        return False
    return task.metric.wants in ("label", "ranked") or (task.metric.wants not in ("number",) and len(values) <= 30)


def _class_columns(task: PredictionTask) -> AnswerFormat:
    number = {name: index for index, name in enumerate(task.targets)}
    truth = task.truth.iloc[:, 0].map(number).to_numpy(np.float64)
    truth = np.nan_to_num(truth, nan=0).astype(int)
    return AnswerFormat("classes", len(number), truth, lambda predicted: _columns(task.targets, _shares(predicted)))


def _many_columns(task: PredictionTask) -> AnswerFormat:
    truth = task.truth.apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
    if np.isnan(truth).any():
        raise UnclearError("several targets that are not numbers")
    sample = task.sample[task.targets].apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
    if np.allclose(sample.sum(1), 1, atol=0.01) and (truth >= 0).all() and (truth.sum(1) > 0).all():
        truth = truth / truth.sum(1, keepdims=True)
        if np.isin(truth, (0, 1)).all():
            write = lambda predicted: _columns(task.targets, _shares(predicted))  # noqa: E731
            return AnswerFormat("classes", truth.shape[1], truth.argmax(1), write)
        return _numbers(task, truth, are_shares=True)
    if np.isin(truth, (0, 1)).all():
        return AnswerFormat("flags", truth.shape[1], truth, lambda predicted: _columns(task.targets, predicted))
    return _numbers(task, truth, are_shares=False)


def _numbers(task: PredictionTask, truth: np.ndarray, are_shares: bool) -> AnswerFormat:
    lowest, highest = truth.min(0), truth.max(0)

    def write(predicted: np.ndarray) -> Cells:
        inside = np.clip(predicted, lowest, highest)
        return _columns(task.targets, _shares(inside) if are_shares else inside)

    return AnswerFormat("numbers", truth.shape[1], truth, write)


def _two_classes(task: PredictionTask, cells: pd.Series, values: list[str], sample: pd.Series) -> AnswerFormat:
    has_fractions = bool((sample % 1 != 0).any())
    is_probability = sample.notna().all() and (task.metric.wants == "probability" or has_fractions)
    if not is_probability:
        return _classes(task, cells, values, 1)
    truth = (cells == values[1]).to_numpy().astype(int)
    return AnswerFormat("classes", 2, truth, lambda predicted: _columns(task.targets, _shares(predicted)[:, 1:]))


def _classes(task: PredictionTask, cells: pd.Series, values: list[str], guesses: int) -> AnswerFormat:
    names = np.array(values, dtype=object)
    truth = pd.Index(values).get_indexer(pd.Index(cells))

    def write(predicted: np.ndarray) -> Cells:
        if guesses == 1:
            return {task.targets[0]: list(names[metric.guesses(task.metric.name, predicted)])}
        best = np.argsort(-predicted, axis=1, kind="stable")[:, :guesses]
        return {task.targets[0]: [" ".join(names[row]) for row in best]}

    return AnswerFormat("classes", len(values), truth, write)


def _tokens(cells: pd.Series, different: int) -> list[str]:
    """The words that make up the cells, if cells are sets of words; otherwise none."""
    lists = cells.iloc[:20_000].str.split()
    if not (lists.str.len() > 1).any() or any(len(words) != len(set(words)) for words in lists):
        return []
    counts = Counter(word for words in lists for word in words)
    is_set = different > len(counts) and counts.total() > 3 * len(counts)
    return [word for word, _ in counts.most_common(MOST_TOKENS)] if is_set else []


def _token_lists(task: PredictionTask, cells: pd.Series, tokens: list[str]) -> AnswerFormat:
    number = {token: index for index, token in enumerate(tokens)}
    truth = np.zeros((len(cells), len(tokens)), dtype=np.float32)
    for row, cell in enumerate(cells):
        truth[row, [number[word] for word in cell.split() if word in number]] = 1
    usual = truth.sum(1).mean()  # predict as many words as training rows have

    def write(predicted: np.ndarray) -> Cells:
        least = np.quantile(predicted, max(0.0, 1 - usual / len(tokens)))
        written = []
        for row in predicted:
            chosen = [index for index in np.argsort(-row, kind="stable")[:30] if row[index] >= least]
            written.append(" ".join(tokens[index] for index in chosen or [row.argmax()]))
        return {task.targets[0]: written}

    return AnswerFormat("flags", len(tokens), truth, write)


def _shares(predicted: np.ndarray) -> np.ndarray:
    """Probabilities that add up to one, none of them exactly zero."""
    clipped = np.clip(predicted, 1e-4, None)
    return clipped / clipped.sum(1, keepdims=True)


def _columns(names: list[str], predicted: np.ndarray) -> Cells:
    return {name: [f"{value:.9g}" for value in predicted[:, column]] for column, name in enumerate(names)}


def filled(task: PredictionTask, question: AnswerFormat, predicted: np.ndarray) -> bytes:
    """The sample with predictions filled in; an id with several rows gets their mean."""
    ids = int(max(task.rows.max(), task.group.max())) + 1
    count = np.bincount(task.group, minlength=ids)
    by_id = np.column_stack([np.bincount(task.group, column, minlength=ids) for column in predicted.T])
    by_id = np.where(count[:, None] > 0, by_id / np.maximum(count, 1)[:, None], predicted.mean(0))
    return written(
        task.sample, {name: np.array(cells, dtype=object)[task.rows] for name, cells in question.write(by_id).items()}
    )


def written(sample: pd.DataFrame, columns: "dict[str, np.ndarray]") -> bytes:
    frame = sample.copy()
    for name, cells in columns.items():
        frame[name] = cells
    return frame.to_csv(index=False, lineterminator="\n").encode("utf-8", "surrogateescape")
