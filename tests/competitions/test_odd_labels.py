"""Odd ways to write a label: the score of each, or None where it is refused, is what the reference gave."""

import io

import pandas as pd
import pytest

from mlebench.core.errors import InvalidSubmissionError
from mlebench.kit import read_frame
from mlebench.registry import Registry

SHEETS = ("herbarium-2020-fgvc7", "herbarium-2021-fgvc8", "herbarium-2022-fgvc9")


def grade(competition: str, guess: list[str]) -> float | None:
    found = Registry().get_competition(competition)
    id, target = found.submission["id"], found.submission["targets"][0]
    submission = read_frame(
        io.StringIO("\n".join([f"{id},{target}", *(f"{n},{cell}" for n, cell in enumerate(guess))]))
    )
    try:
        return found.grader.grade_fn(submission, pd.DataFrame({id: [0, 1, 2], target: [1, 2, 3]}))
    except InvalidSubmissionError:
        return None


@pytest.mark.parametrize(
    ("guess", "macro_f1", "error"),
    [
        (["1", "2", "3"], 1, 0),
        (["1.9", "-0.5", "3"], 1 / 2, None),  # 1, 0, 3
        (["1e0", "2", "3"], 1, None),
        (["True", "False", "True"], 1 / 6, 2 / 3),  # 1, 0, 1
        (["True", "2", "3"], None, None),
        (["1_0", "2", "3"], 1 / 2, 1 / 3),  # text, which Python's int takes for 10
        (['" 1 "', "2 ", "3"], 1, 0),
        (["1 9", "2 8", "7 3"], None, 1 / 3),  # lists: the first counts
        (["1 9", "2", "3"], None, 0),
        (['"1,2"', "2", "3"], None, None),
        ([" ", "2", "3"], None, None),
        (["9223372036854775807", "2", "3"], 1 / 2, 1 / 3),
        (["9223372036854775808", "2", "3"], None, None),
        (["99999999999999999999", "2", "3"], None, None),
    ],
)
def test_labels(guess: list[str], macro_f1: float | None, error: float | None) -> None:
    for competition in SHEETS:
        assert grade(competition, guess) == (macro_f1 if macro_f1 is None else pytest.approx(macro_f1))
    assert grade("inaturalist-2019-fgvc6", guess) == (error if error is None else pytest.approx(error))
