"""Models of a few kinds behind one call: fit on features and truth, predict a column for each class, flag or number."""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from features import Features
from scipy import sparse
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

THREADS = len(os.sched_getaffinity(0))
Predict = Callable[[Features], np.ndarray]


@dataclass(frozen=True)
class Problem:
    """`classes`: the truth is the number of a class. `flags` and `numbers`: a matrix, a column for each target."""

    kind: str
    width: int  # columns of a prediction
    metric: str
    seed: int


@dataclass(frozen=True)
class BaselineModel:
    name: str
    settings: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name + "".join(f" {key}={value:.3g}" for key, value in self.settings.items())

    def fit(self, problem: Problem, features: Features, truth: np.ndarray) -> Predict:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whether it converged does not matter: its score decides
            return _FIT[self.name](problem, features, truth, self.settings)


def usual(problem: Problem, features: Features) -> list[BaselineModel]:
    """The models that are always tried, quickest first; large problems skip the slow ones."""
    rows, columns = len(features), features.dense.shape[1] + features.sparse.shape[1]
    cost = rows * problem.width
    models = (
        [BaselineModel("prior"), BaselineModel("linear", {"strength": 1.0})] if columns else [BaselineModel("prior")]
    )
    if problem.kind == "classes" and rows * columns * problem.width > 3e9:
        models = [BaselineModel("prior")]
    if features.dense.shape[1]:
        models += [BaselineModel("neighbours", {"count": 10})] if rows <= 50_000 else []
        models += (
            [BaselineModel("forest", {"leaf": 1 if rows < 5000 else 3, "share": 0.3})] if cost <= 2_000_000 else []
        )
        trees = problem.width * features.dense.shape[1]  # pictures have many columns, which help little here
        models += [BaselineModel("boosting", {"rate": 0.1, "leaves": 15, "rounds": 100})] if trees <= 1000 else []
    return models


def drawn(problem: Problem, features: Features, random: np.random.Generator) -> BaselineModel:
    """A model with randomly drawn settings."""
    names = [model.name for model in usual(problem, features) if model.name != "prior"] or ["prior"]
    name = names[random.integers(len(names))]
    settings: dict[str, dict[str, Any]] = {
        "prior": {},
        "linear": {"strength": 10 ** random.uniform(-3, 2)},
        "neighbours": {"count": int(random.integers(1, 40))},
        "forest": {"leaf": int(random.integers(1, 10)), "share": random.uniform(0.05, 1)},
        "boosting": {
            "rate": 10 ** random.uniform(-2, -0.5),
            "leaves": int(random.integers(4, 64)),
            "rounds": int(random.integers(50, 400)),
        },
    }
    return BaselineModel(name, settings[name])


def _prior(problem: Problem, truth: np.ndarray) -> Predict:
    if problem.kind == "classes":
        middle = (np.bincount(truth, minlength=problem.width) + 0.5) / (len(truth) + 0.5 * problem.width)
    elif problem.metric == "rmsle":
        middle = np.expm1(np.log1p(np.clip(truth, 0, None)).mean(0))
    else:
        middle = np.median(truth, 0) if problem.metric == "mae" else truth.mean(0)
    return lambda rows: np.tile(middle, (len(rows), 1))


class _Scaled:
    """All columns on one scale, with missing values replaced by the median."""

    def __init__(self, features: Features):
        dense = features.dense
        empty = np.isnan(dense).all(0) if len(dense) else np.zeros(dense.shape[1], bool)
        self._middle = np.where(empty, 0, np.nanmedian(np.where(empty, 0, dense), 0)) if dense.size else np.zeros(0)
        filled = self.filled(features)
        self._mean, self._spread = filled.mean(0), filled.std(0) + 1e-6

    def filled(self, features: Features) -> np.ndarray:
        return np.where(np.isnan(features.dense), self._middle, features.dense)

    def dense(self, features: Features) -> np.ndarray:
        return np.clip((self.filled(features) - self._mean) / self._spread, -10, 10)

    def all(self, features: Features) -> Any:
        dense = self.dense(features)
        if not features.sparse.shape[1]:
            return dense
        # Scaled down so that many numbers do not drown out the words.
        return sparse.csr_matrix(sparse.hstack([sparse.csr_matrix(dense * 0.3), features.sparse]))


def _linear(problem: Problem, features: Features, truth: np.ndarray, settings: dict[str, Any]) -> Predict:
    scaled = _Scaled(features)
    inputs = scaled.all(features)
    few = problem.kind == "classes" or (problem.kind == "flags" and problem.width <= 12 and _is_binary(truth))
    if few:
        strength = settings["strength"] * (1 if features.sparse.shape[1] else 0.05)
        make = lambda: LogisticRegression(C=strength, max_iter=200)  # noqa: E731
        return _of_classifiers(problem, make, inputs, truth, scaled.all)
    model = Ridge(alpha=(1 if features.sparse.shape[1] else 10) / settings["strength"], solver="auto")
    target = _onto_scale(problem, truth)
    model.fit(inputs, target)
    return lambda rows: _from_scale(problem, model.predict(scaled.all(rows)).reshape(len(rows), -1))


def _neighbours(problem: Problem, features: Features, truth: np.ndarray, settings: dict[str, Any]) -> Predict:
    scaled = _Scaled(features)
    count = min(settings["count"], len(features))
    if problem.kind == "classes":
        make = lambda: KNeighborsClassifier(count, weights="distance")  # noqa: E731
        predict = _of_classifiers(problem, make, scaled.dense(features), truth, scaled.dense)
        prior = _prior(problem, truth)
        return lambda rows: 0.9 * predict(rows) + 0.1 * prior(rows)
    model = KNeighborsRegressor(count, weights="distance")
    model.fit(scaled.dense(features), _onto_scale(problem, truth))
    return lambda rows: _from_scale(problem, model.predict(scaled.dense(rows)).reshape(len(rows), -1))


def _forest(problem: Problem, features: Features, truth: np.ndarray, settings: dict[str, Any]) -> Predict:
    scaled = _Scaled(features)
    options: dict[str, Any] = {"n_estimators": 100, "min_samples_leaf": settings["leaf"], "n_jobs": THREADS}
    options |= {"max_features": settings["share"], "random_state": problem.seed}
    if problem.kind == "classes":
        make = lambda: ExtraTreesClassifier(**options)  # noqa: E731
        predict = _of_classifiers(problem, make, scaled.filled(features), truth, scaled.filled)
        prior = _prior(problem, truth)
        return lambda rows: 0.97 * predict(rows) + 0.03 * prior(rows)
    model = ExtraTreesRegressor(**options)
    model.fit(scaled.filled(features), _onto_scale(problem, truth))
    return lambda rows: _from_scale(problem, model.predict(scaled.filled(rows)).reshape(len(rows), -1))


def _boosting(problem: Problem, features: Features, truth: np.ndarray, settings: dict[str, Any]) -> Predict:
    options: dict[str, Any] = {"learning_rate": settings["rate"], "max_leaf_nodes": settings["leaves"]}
    options |= {"max_iter": settings["rounds"], "min_samples_leaf": max(2, min(20, len(features) // 30))}
    options |= {"random_state": problem.seed, "early_stopping": False, "l2_regularization": 1.0}
    if problem.kind == "classes" or (problem.kind == "flags" and _is_binary(truth)):
        make = lambda: HistGradientBoostingClassifier(**options)  # noqa: E731
        return _of_classifiers(problem, make, features.dense, truth, lambda rows: rows.dense)
    loss = "absolute_error" if problem.metric == "mae" else "squared_error"
    target = _onto_scale(problem, truth)
    models = []
    for column in range(problem.width):
        model = HistGradientBoostingRegressor(loss=loss, **options)
        models.append(model.fit(features.dense, target[:, column]))
    return lambda rows: _from_scale(problem, np.column_stack([model.predict(rows.dense) for model in models]))


def _is_binary(truth: np.ndarray) -> bool:
    return bool(np.isin(truth, (0, 1)).all())


def _of_classifiers(
    problem: Problem, make: Callable[[], Any], inputs: Any, truth: np.ndarray, view: Callable[[Features], Any]
) -> Predict:
    """One classifier for classes; one for each flag. Unseen classes get zero."""
    if problem.kind == "classes":
        if len(np.unique(truth)) < 2:
            return _prior(problem, truth)
        model = make().fit(inputs, truth)

        def predict(rows: Features) -> np.ndarray:
            spread = np.zeros((len(rows), problem.width))
            spread[:, model.classes_] = model.predict_proba(view(rows))
            return spread

        return predict
    models = [make().fit(inputs, flag) if len(np.unique(flag)) > 1 else flag[0] for flag in truth.astype(int).T]
    return lambda rows: np.column_stack(
        [
            model.predict_proba(view(rows))[:, 1] if hasattr(model, "predict_proba") else np.full(len(rows), model)
            for model in models
        ]
    )


def _onto_scale(problem: Problem, truth: np.ndarray) -> np.ndarray:
    return np.log1p(np.clip(truth, 0, None)) if problem.metric == "rmsle" else truth


def _from_scale(problem: Problem, predicted: np.ndarray) -> np.ndarray:
    if problem.kind == "flags":
        return np.clip(predicted, 0, 1)
    return np.expm1(np.clip(predicted, 0, 50)) if problem.metric == "rmsle" else predicted


_FIT: dict[str, Callable[[Problem, Features, np.ndarray, dict[str, Any]], Predict]] = {
    "prior": lambda problem, _, truth, __: _prior(problem, truth),
    "linear": _linear,
    "neighbours": _neighbours,
    "forest": _forest,
    "boosting": _boosting,
}
