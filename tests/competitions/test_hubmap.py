"""Odd run-length encodings: the score of each, or None where it is refused, is what the reference gave."""

import io

import pandas as pd
import pytest

from mlebench.core.errors import InvalidSubmissionError
from mlebench.kit import read_frame
from mlebench.registry import Registry

ANSWERS = """id,encoding,width_pixels,height_pixels
c1,3 4 11 5,4,5
a1,1 2 7 6,6,3
b1,5 10,2,10
"""
WITHOUT_A1 = pytest.approx(2 / 3)
ONLY_2_OF_8_PIXELS = pytest.approx(0.8)


def grade(*encodings: str) -> float:
    """The score of a submission for a1, b1 and c1."""
    cells = "\n".join(f'{id},"{encoding}"' for id, encoding in zip(("a1", "b1", "c1"), encodings, strict=True))
    submission, answers = (read_frame(io.StringIO(text)) for text in (f"id,predicted\n{cells}\n", ANSWERS))
    return Registry().get_competition("hubmap-kidney-segmentation").grader.grade_fn(submission, answers)


def grade_first(encoding: str) -> float:
    """The score when all slides are right but a1 (18 pixels, of which 8 are marked), which gets this encoding."""
    return grade(encoding, "5 10", "3 4 11 5")


@pytest.mark.parametrize(
    ("encoding", "score"),
    [
        ("1 2 7 6", 1.0),
        ("1\t2\n7 6", 1.0),
        ("1 2", ONLY_2_OF_8_PIXELS),
        ("+1 002", ONLY_2_OF_8_PIXELS),
        ("1 5 6 2", ONLY_2_OF_8_PIXELS),  # runs that touch
        ("1 18", pytest.approx(0.8717948717948718)),
        # one number is an empty mask, three share a length
        ("7", WITHOUT_A1),
        ("100", WITHOUT_A1),
        ("1 6 11", ONLY_2_OF_8_PIXELS),
        # what is past the last pixel is cut off and not checked
        ("15 10", WITHOUT_A1),
        ("1 2 30 5", ONLY_2_OF_8_PIXELS),
        ("1 2 30 5 32 5", ONLY_2_OF_8_PIXELS),
        ("1 9223372036854775807", pytest.approx(0.8717948717948718)),
        ("5 9223372036854775807 7 1", pytest.approx(0.7407407407407408)),  # the first run ends beyond 64 bits
        # empty cells, and what a reader of CSV takes for one
        ("", WITHOUT_A1),
        ("   ", WITHOUT_A1),
        ("NA", WITHOUT_A1),
    ],
)
def test_accepted(encoding: str, score: float) -> None:
    assert grade_first(encoding) == score


@pytest.mark.parametrize(
    ("encoding", "reason"),
    [
        ("1 2 7 2 12", "without a length"),
        ("1 6 3", "overlap"),
        ("11 6 1", "ascending"),
        ("15 10 17 5", "overlap"),
        ("1 5 3 2", "overlap"),
        ("1 2 1 2", "overlap"),
        ("7 6 1 2", "ascending"),
        ("0", "positive"),
        ("0 3", "positive"),
        ("1 0", "positive"),
        ("5 -2", "positive"),
        ("1.0 2", "whole number"),
        ("1,2 7,6", "whole number"),
        ("abc", "whole number"),
    ],
)
def test_refused(encoding: str, reason: str) -> None:
    with pytest.raises(InvalidSubmissionError, match=f"slide a1: .*{reason}"):
        grade_first(encoding)


def test_an_empty_column_is_valid_and_one_of_plain_numbers_is_not() -> None:
    assert grade("", "", "") == 0
    for cells in (("1", "2", "3"), ("1", "", "3"), ("1.5", "2", "3"), ("True", "", "True")):
        with pytest.raises(InvalidSubmissionError, match="plain numbers"):
            grade(*cells)
    assert grade("5", "1 2", "7") == 0  # one pair among them makes the column text, and each number an empty mask


def test_two_empty_masks_agree() -> None:
    answers = pd.DataFrame({"id": ["a1"], "encoding": [""], "width_pixels": [6], "height_pixels": [3]})
    submission = pd.DataFrame({"id": ["a1"], "predicted": [float("nan")]})
    assert Registry().get_competition("hubmap-kidney-segmentation").grader.grade_fn(submission, answers) == 1
