"""The AUROC with subgroups: hand-worked, against scikit-learn's AUROC of each part, and by properties."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from mlebench.metrics import auroc, bias_auroc

pytestmark = pytest.mark.bytes

Data = tuple[np.ndarray, np.ndarray, np.ndarray]


@st.composite
def rows_in_subgroups(draw: st.DrawFn) -> Data:
    """Rows of both classes inside and outside every subgroup, with many equal scores."""
    rng = np.random.RandomState(draw(st.integers(0, 2**31)))
    count, groups = draw(st.integers(4, 40)), draw(st.integers(1, 4))
    truth = np.concatenate([[0, 1, 0, 1], rng.randint(2, size=count)])
    inside = np.concatenate(
        [np.repeat([[0], [1]], [2, 2], axis=0).repeat(groups, axis=1), rng.randint(2, size=(count, groups))]
    )
    return truth, rng.randint(9, size=len(truth)) / 8, inside


def test_a_hand_worked_example() -> None:
    #                  outside     inside
    truth = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    score = np.array([1, 2, 5, 7, 3, 6, 4, 8]) / 10
    inside = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    within = 3 / 4  # of the pairs 4>3, 4>6, 8>3, 8>6 only the second is wrong
    own_negatives = 3 / 4  # 5>3, 5>6, 7>3, 7>6
    own_positives = 1  # 4>1, 4>2, 8>1, 8>2
    overall = 14 / 16  # those two of the sixteen are wrong
    expected = (overall + within + own_negatives + own_positives) / 4
    assert bias_auroc(truth, score, inside[:, None]) == pytest.approx(expected, abs=1e-15)
    # Above 0.45 are the positives 5, 7 and 8 and the negative 6. Ties count half: 9 pairs are right and 6 are ties.
    halved = (12 / 16 + 2 / 4 + 3 / 4 + 3 / 4) / 4
    assert bias_auroc(truth, score, inside[:, None], score_threshold=0.45) == pytest.approx(halved, abs=1e-15)


@settings(max_examples=settings().max_examples // 2)
@given(rows_in_subgroups(), st.sampled_from([-5, -1, 1, 2]), st.sampled_from([None, 0.5]))
def test_parts_are_scikit_learns(data: Data, power: float, threshold: float | None) -> None:
    truth, score, inside = data
    used = score if threshold is None else (score >= threshold).astype(int)
    parts: list[list[float]] = [[], [], []]
    for group in inside.T:
        own, others = group == 1, group == 0
        masks = own, (own & (truth == 0)) | (others & (truth == 1)), (own & (truth == 1)) | (others & (truth == 0))
        for part, mask in zip(parts, masks, strict=True):
            part.append(roc_auc_score(truth[mask], used[mask]))
    if power < 0 and any(value == 0 for part in parts for value in part):
        means = [0.0 if 0 in part else float(np.mean(np.power(part, power)) ** (1 / power)) for part in parts]
    else:
        means = [math.fsum(value**power for value in part) ** (1 / power) / len(part) ** (1 / power) for part in parts]
    expected = 0.25 * roc_auc_score(truth, used) + 0.25 * sum(means)
    ours = bias_auroc(truth, score, inside, power=power, score_threshold=threshold)
    assert ours == pytest.approx(expected, abs=1e-12)
    assert type(ours) is np.float64


@given(rows_in_subgroups(), st.integers(0, 2**31))
def test_order_of_rows_and_subgroups_does_not_matter_and_perfect_scores_are_perfect(data: Data, seed: int) -> None:
    truth, score, inside = data
    ours = bias_auroc(truth, score, inside)
    assert 0 <= ours <= 1
    rng = np.random.RandomState(seed)
    rows, groups = rng.permutation(len(truth)), rng.permutation(inside.shape[1])
    assert bias_auroc(truth[rows], score[rows], inside[rows][:, groups]) == pytest.approx(ours, abs=1e-12)
    assert bias_auroc(truth, 3 * score - 7, inside) == ours
    assert bias_auroc(truth == 1, score, inside == 1) == ours
    assert bias_auroc(truth, truth, inside) == 1
    assert bias_auroc(truth, 1 - truth, inside) == 0
    assert bias_auroc(truth, np.zeros(len(truth)), inside) == pytest.approx(0.5, abs=1e-15)


def test_a_threshold_makes_an_order_below_it_worthless() -> None:
    truth, inside = np.array([0, 1, 0, 1]), np.array([[0], [0], [1], [1]])
    score = truth * 0.3 + 0.1
    assert bias_auroc(truth, score, inside) == 1
    assert bias_auroc(truth, score, inside, score_threshold=0.5) == pytest.approx(0.5)
    assert bias_auroc(truth, score + 0.1, inside, score_threshold=0.5) == 1, "on the threshold is above it"


@given(rows_in_subgroups())
def test_the_worst_subgroup_counts_most(data: Data) -> None:
    truth, score, inside = data
    scores = [bias_auroc(truth, score, inside, power=power) for power in (-20, -5, -1, 1)]
    assert scores == sorted(scores) or np.allclose(scores, sorted(scores), atol=1e-12)


def test_one_class_alone_in_a_subgroup_is_an_error() -> None:
    with pytest.raises(ValueError, match="both classes"):
        bias_auroc(np.array([0, 1, 1]), np.arange(3), np.array([[0], [0], [1]]))
    assert auroc(np.array([0, 1, 1]), np.arange(3)) == 1
