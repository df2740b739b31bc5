"""Scores of scikit-learn with types: from its defaults, a type checker takes `zero_division` for text."""

from collections.abc import Callable

import sklearn.metrics

f1_score: Callable[..., float] = sklearn.metrics.f1_score
fbeta_score: Callable[..., float] = sklearn.metrics.fbeta_score
jaccard_score: Callable[..., float] = sklearn.metrics.jaccard_score
