"""The stand-in that is made from a sample submission."""

import pandas as pd
import pytest

from mlebench.kit import with_both_classes


def test_a_target_that_is_the_same_number_everywhere_gets_both_classes() -> None:
    sample = pd.DataFrame({"id": [1, 2, 3], "p": [0.5, 0.5, 0.5]})
    made = with_both_classes(sample, ["p"])
    assert made["p"].tolist() == [1.0, 0.0, 1.0]
    assert made.dtypes.equals(sample.dtypes)
    assert sample["p"].tolist() == [0.5] * 3


def test_with_several_such_targets_each_row_has_one() -> None:
    sample = pd.DataFrame({"id": range(7), "a": [0] * 7, "b": [0] * 7, "c": [0] * 7})
    made = with_both_classes(sample, ["a", "b", "c"]).loc[:, ["a", "b", "c"]]
    assert made.sum(axis=1).tolist() == [1] * 7
    assert made.nunique().tolist() == [2, 2, 2]


@pytest.mark.parametrize("values", [[1, 2, 2], ["x", "x", "x"], [float("nan")] * 3, [0.5, None, 0.5]])
def test_informative_targets_stay(values: list) -> None:
    sample = pd.DataFrame({"id": [1, 2, 3], "y": pd.Series(values)})
    pd.testing.assert_frame_equal(with_both_classes(sample, ["y"]), sample)
