"""The weighted area under the ROC curve against scikit-learn's partial areas, worked examples and properties."""

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import assume, given
from hypothesis import strategies as st

from mlebench.metrics import auroc, weighted_auroc

pytestmark = pytest.mark.bytes

EDGES, WEIGHTS = (0.0, 0.4, 1.0), (2.0, 1.0)
ROWS = st.lists(st.tuples(st.booleans(), st.integers(-4, 4).map(lambda n: n / 8)), min_size=2, max_size=40)


def _columns(rows: list[tuple[bool, float]]) -> tuple[np.ndarray, np.ndarray]:
    truth, score = map(np.array, zip(*rows, strict=True))
    assume(len(set(truth.tolist())) == 2)
    return truth, score


def _area_above(truth: np.ndarray, score: np.ndarray, edge: float) -> float:
    """Between the curve and the right margin, from a true positive rate on: a partial area of the turned curve."""
    width = 1 - edge
    scaled = sklearn.metrics.roc_auc_score(~truth, -score, max_fpr=width)  # 1/2 for the diagonal, 1 for all of it
    return width * (width / 2 + (2 * scaled - 1) * (1 - width / 2))


@given(ROWS, st.sampled_from([0.25, 0.4, 0.5, 0.7]), st.integers(1, 5), st.integers(1, 5))
def test_bands_are_scikit_learns_partial_areas(
    rows: list[tuple[bool, float]], edge: float, low: int, high: int
) -> None:
    truth, score = _columns(rows)
    upper = _area_above(truth, score, edge)
    lower = sklearn.metrics.roc_auc_score(truth, score) - upper
    expected = (low * lower + high * upper) / (low * edge + high * (1 - edge))
    ours = weighted_auroc(truth, score, edges=(0, edge, 1), weights=(low, high))
    assert isinstance(ours, np.float64)
    assert ours == pytest.approx(expected, abs=1e-12)


@given(ROWS)
def test_equal_weights_give_the_plain_area_whatever_the_edges(rows: list[tuple[bool, float]]) -> None:
    truth, score = _columns(rows)
    for edges in ((0, 1), EDGES, (0, 0.2, 0.5, 0.9, 1)):
        ours = weighted_auroc(truth, score, edges=edges, weights=[3] * (len(edges) - 1))
        assert ours == pytest.approx(auroc(truth, score), abs=1e-12)


@given(ROWS)
def test_only_the_order_of_scores_counts(rows: list[tuple[bool, float]]) -> None:
    truth, score = _columns(rows)
    ours = weighted_auroc(truth, score, edges=EDGES, weights=WEIGHTS)
    assert weighted_auroc(truth[::-1], np.exp(score[::-1]), edges=EDGES, weights=WEIGHTS) == ours
    assert 0 <= ours <= 1 + 1e-12


def test_worked_examples() -> None:
    def score_of(*scores: float) -> float:
        truth = np.array([1] * 5 + [0] * 5)
        return weighted_auroc(truth, np.array(scores), edges=EDGES, weights=WEIGHTS)

    assert score_of(9, 9, 9, 9, 9, 1, 1, 1, 1, 1) == pytest.approx(1)
    assert score_of(1, 1, 1, 1, 1, 9, 9, 9, 9, 9) == 0
    # A constant: below 0.4 the area is 0.4 - 0.4² / 2 = 0.32, above it 0.6² / 2 = 0.18.
    assert score_of(*[0.5] * 10) == pytest.approx((2 * 0.32 + 0.18) / 1.4)
    # Two of five positives before all negatives, three behind them: the lower band is full, the upper one empty.
    assert score_of(9, 9, 1, 1, 1, 5, 5, 5, 5, 5) == pytest.approx(0.8 / 1.4)
    assert round(float(score_of(*[0.5] * 10)), 5) == 0.58571


def test_one_class_has_no_curve() -> None:
    with pytest.raises(ValueError, match="both classes"):
        weighted_auroc(np.ones(3), np.arange(3), edges=EDGES, weights=WEIGHTS)
