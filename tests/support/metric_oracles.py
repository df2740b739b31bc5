"""scikit-learn's scores with types: from its defaults, a type checker infers that `zero_division` is text."""

from collections.abc import Callable

import sklearn.metrics

f1_score: Callable[..., float] = sklearn.metrics.f1_score
fbeta_score: Callable[..., float] = sklearn.metrics.fbeta_score
jaccard_score: Callable[..., float] = sklearn.metrics.jaccard_score
