"""Models against each other on rows kept back: whatever is best so far is fitted to all rows and handed in."""

from collections.abc import Callable
from dataclasses import dataclass

import metric
import models
import numpy as np
from answers import Question
from features import Features
from metric import Metric
from outside import Clock, Trajectory

KEPT_BACK = 0.2
FEWEST = 10  # rows, for any to be kept back
BLENDED = 3


@dataclass
class Entry:
    model: models.Model
    value: float
    kept_back: np.ndarray  # predictions


class Contest:
    def __init__(
        self,
        question: Question,
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
        order = self._random.permutation(len(train))
        kept = int(KEPT_BACK * len(train)) if len(train) >= FEWEST else 0
        self._back, self._rest = order[:kept] if kept else order, order[kept:]
        self._entries: list[Entry] = []
        self._predicted: dict[str, np.ndarray] = {}
        self._best = -np.inf

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

    def _try(self, model: models.Model) -> None:
        self._trajectory.action("fit", f"{model} on {len(self._rest)} rows")
        part = self._question.learned_from(self._rest)
        predict = model.fit(self._problem, self._train.take(self._rest), part.truth)
        predicted = predict(self._train.take(self._back))
        value = self._value(predicted)
        self._trajectory.validation(self._metric.name, value, self._metric.higher_is_better)
        self._entries.append(Entry(model, value, predicted))
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

    def _submit(self, entries: list[Entry], value: float) -> None:
        for entry in entries:
            if str(entry.model) not in self._predicted:
                predict = entry.model.fit(self._problem, self._train, self._question.truth)
                self._predicted[str(entry.model)] = predict(self._test)
        if self._hand_in(np.mean([self._predicted[str(entry.model)] for entry in entries], axis=0)):
            self._best = self._better(value)
