"""Kendall's tau of lists and the weighted log loss of labels, against scipy, scikit-learn and plain restatements."""

from itertools import combinations

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from mlebench.metrics import binary_log_loss, pooled_kendall_tau, weighted_multilabel_log_loss

pytestmark = pytest.mark.bytes

ORDERS = st.integers(1, 12).flatmap(lambda count: st.permutations(range(count)))


def _wrong_pairs(order: list[int]) -> int:
    return sum(one > other for one, other in combinations(order, 2))


@given(st.lists(st.tuples(ORDERS, st.integers(0, 2**31)), min_size=1, max_size=6))
def test_pooled_tau_counts_the_pairs_in_the_wrong_order(lists: list[tuple[list[int], int]]) -> None:
    assume(any(len(order) > 1 for order, _ in lists))
    truth, guess = [], []
    for order, seed in lists:
        names = [f"cell {name}" for name in np.random.RandomState(seed).permutation(len(order))]
        truth.append(names)
        guess.append([names[place] for place in order])
    wrong = sum(_wrong_pairs(order) for order, _ in lists)
    pairs = sum(len(order) * (len(order) - 1) / 2 for order, _ in lists)
    tau = pooled_kendall_tau(truth, guess)
    assert type(tau) is float
    assert tau == pytest.approx(1 - 2 * wrong / pairs, abs=1e-12)
    assert pooled_kendall_tau(guess, truth) == tau
    assert pooled_kendall_tau(truth, truth) == 1
    assert pooled_kendall_tau(truth, [names[::-1] for names in truth]) == -1


@given(st.integers(2, 300), st.integers(0, 2**31))
def test_tau_of_one_list_is_scipys(count: int, seed: int) -> None:
    order = np.random.RandomState(seed).permutation(count)
    ours = pooled_kendall_tau([list(range(count))], [order.tolist()])
    assert ours == pytest.approx(kendalltau(np.arange(count), order)[0], abs=1e-12)


def test_long_lists_weigh_more() -> None:
    assert pooled_kendall_tau(["ab", "abcd"], ["ba", "abcd"]) == pytest.approx(1 - 4 / 14)
    assert pooled_kendall_tau(["ab", "abcd", "x"], ["ab", "dcba", "x"]) == pytest.approx(1 - 4 * 6 / 14)


def test_tau_of_many_items_is_quick_and_exact() -> None:
    items = list(range(1 << 18))
    assert pooled_kendall_tau([items], [items[::-1]]) == -1
    swapped = [place ^ 1 for place in items]
    assert pooled_kendall_tau([items], [swapped]) == 1 - 4 * 2**17 / (2**18 * (2**18 - 1))


@st.composite
def labelled(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shape = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    rng = np.random.RandomState(draw(st.integers(0, 2**31)))
    probabilities = np.where(rng.rand(*shape) < 0.2, rng.randint(0, 2, shape), rng.rand(*shape))
    return rng.randint(0, 2, shape), probabilities, rng.randint(1, 9, shape[1])


@given(labelled(), st.sampled_from([1, 2, 0.5]))
def test_weighted_log_loss_is_the_mean_of_scikit_learns_by_row(
    data: tuple[np.ndarray, np.ndarray, np.ndarray], factor: float
) -> None:
    truth, guess, weights = data
    expected = [
        sklearn.metrics.log_loss(
            true, np.clip(row, 1e-15, 1 - 1e-15), sample_weight=weights * factor**true, labels=[0, 1]
        )
        for true, row in zip(truth, guess, strict=True)
    ]
    ours = weighted_multilabel_log_loss(truth, guess, weights=weights, positive_factor=factor)
    assert isinstance(ours, np.float64)
    # Nearer to 0 or 1 than scikit-learn allows, one wrong label costs 34.5 instead of 36.
    if ((guess > 1e-9) & (guess < 1 - 1e-9)).all():
        assert ours == pytest.approx(np.mean(expected), abs=1e-9)
        if factor == 1:
            same = weighted_multilabel_log_loss(truth, guess, weights=np.full(len(weights), 3))
            assert same == pytest.approx(binary_log_loss(truth.ravel(), guess.ravel()), abs=1e-9)


def test_weighted_log_loss_by_hand() -> None:
    truth, guess = np.array([[1, 0], [0, 0]]), np.array([[0.5, 0.5], [1.0, 0.0]])
    ours = weighted_multilabel_log_loss(truth, guess, weights=np.array([7, 1]), positive_factor=2)
    assert ours == pytest.approx((np.log(2) + 7 / 8 * -np.log(1e-15)) / 2, rel=1e-3)
    ordered = weighted_multilabel_log_loss(truth, np.array([[0.9, 0.2], [0.1, 0.3]]), weights=np.array([7, 1]))
    rows = -(7 * np.log(0.9) + np.log(0.8)) / 8, -(7 * np.log(0.9) + np.log(0.7)) / 8
    assert ordered == pytest.approx(np.mean(rows))
