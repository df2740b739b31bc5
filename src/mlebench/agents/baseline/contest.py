"""Compares models on held-out rows: the best one so far is fitted to all rows and submitted."""

from collections.abc import Callable
from dataclasses import dataclass

import metric
import models
import numpy as np
from features import Features
from metric import Metric
from outside import Clock, Trajectory
from predictions import AnswerFormat
from task import UnclearError

KEPT_BACK = 0.2
FEWEST = 10  # groups; with fewer, none are held out
BLENDED = 3


@dataclass
class Candidate:
    model: models.BaselineModel
    value: float
    kept_back: np.ndarray  # predictions


class Contest:
    def __init__(
        self,
        question: AnswerFormat,
        groups: np.ndarray,  # rows of the same group are held out together
        train: Features,
        test: Features,
        metric: Metric,
        seed: int,
        hand_in: Callable[[np.ndarray], bool],
        trajectory: Trajectory,
    ):
        self._question, self._train, self._test = question, train, test
        self._metric = metric
        self._hand_in, self._trajectory = hand_in, trajectory
        self._random = np.random.default_rng(seed)
        self._problem = models.Problem(question.kind, question.width, metric.name, seed)
        self._back, self._training_rows = self._parts(groups)
        self._entries: list[Candidate] = []
        self._predicted: dict[str, np.ndarray] = {}
        self._best = -np.inf

    def _parts(self, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The held-out rows, and the others; if there are too few, all rows serve as both."""
        every = np.arange(len(groups))
        names = self._random.permutation(np.unique(groups))
        if len(names) < FEWEST:
            return every, every
        is_back = np.isin(groups, names[: int(KEPT_BACK * len(names))])
        return every[is_back], every[~is_back]

    def run(self, trials: int, clock: Clock) -> None:
        for model in models.usual(self._problem, self._train):
            if clock.left() < 0:
                return
            self._try(model)
        self._blend()
        for _ in range(trials):
            if clock.left() < 0:
                return
            self._try(models.drawn(self._problem, self._train, self._random))
        if trials:
            self._blend()

    def _try(self, model: models.BaselineModel) -> None:
        self._trajectory.action("fit", f"{model} on {len(self._training_rows)} rows")
        part = self._question.learned_from(self._training_rows)
        predict = model.fit(self._problem, self._train.take(self._training_rows), part.truth)
        predicted = predict(self._train.take(self._back))
        value = self._value(predicted)
        self._trajectory.validation(self._metric.name, value, self._metric.higher_is_better)
        self._entries.append(Candidate(model, value, predicted))
        if self._better(value) > self._best:
            self._submit([self._entries[-1]], value)

    def _blend(self) -> None:
        """The mean of the best few, if that is better than each of them."""
        best = sorted(self._entries, key=lambda entry: -self._better(entry.value))[:BLENDED]
        for count in range(2, len(best) + 1):
            value = self._value(np.mean([entry.kept_back for entry in best[:count]], axis=0))
            if self._better(value) > self._best:
                self._trajectory.thought("The mean of " + ", ".join(str(entry.model) for entry in best[:count]))
                self._trajectory.validation(self._metric.name, value, self._metric.higher_is_better)
                self._submit(best[:count], value)

    def _value(self, predicted: np.ndarray) -> float:
        truth = self._question.truth[self._back]
        return metric.score(self._metric, self._question.kind, truth, predicted)

    def _better(self, value: float) -> float:
        return -np.inf if np.isnan(value) else value if self._metric.higher_is_better else -value

    def _submit(self, entries: list[Candidate], value: float) -> None:
        for entry in entries:
            if str(entry.model) not in self._predicted:
                predict = entry.model.fit(self._problem, self._train, self._question.truth)
                self._predicted[str(entry.model)] = predict(self._test)
        if self._hand_in(np.mean([self._predicted[str(entry.model)] for entry in entries], axis=0)):
            self._best = self._better(value)
        elif self._best == -np.inf:
            raise UnclearError("what the models predict is not what is asked for")
