"""Odd predictions of words and of ranks: the score of each, or None where it is refused, is what the reference gave."""

import io
import math

import pytest

from mlebench.core.errors import InvalidSubmissionError
from mlebench.kit import read_frame
from mlebench.registry import Registry

TWEETS = "tweet-sentiment-extraction", "textID,selected_text"
QUESTIONS = "chaii-hindi-and-tamil-question-answering", "id,PredictionString"
PHRASES = "us-patent-phrase-to-phrase-matching", "id,score"


def grade(competition: tuple[str, str], truth: list[str], guess: list[str]) -> float | None:
    id, header = competition
    files = ("\n".join([header, *(f'x{row},"{cell}"' for row, cell in enumerate(cells))]) for cells in (guess, truth))
    submission, answers = (read_frame(io.StringIO(file)) for file in files)
    try:
        return Registry().get_competition(id).grader.grade_fn(submission, answers)
    except InvalidSubmissionError:
        return None


@pytest.mark.parametrize(
    ("guess", "tweets", "questions"),
    [
        (["a b", "2", "c"], 1.0, 1.0),
        (["A  a", "2", "d"], 0.5, 0.5),
        (["", "", ""], 0.0, 0.0),
        (["null", "NA", "c"], 1 / 3, 1 / 3),  # to a reader of CSV these are empty cells
        (["1", "2", "3"], 1 / 3, None),  # a column of numbers
        (["1.0", "2", "3"], 0.0, None),  # where 2 is printed as 2.0
        (["1", "", "2"], 0.0, None),
        (["True", "False", "True"], 0.0, None),
    ],
)
def test_words(guess: list[str], tweets: float, questions: float | None) -> None:
    truth = ["b a", "2", "c"]
    assert grade(TWEETS, truth, guess) == pytest.approx(tweets)
    assert grade(QUESTIONS, truth, guess) == (questions if questions is None else pytest.approx(questions))


def test_an_empty_prediction_of_an_empty_truth_is_refused_or_wrong() -> None:
    assert grade(TWEETS, ["a", "", "b"], ["a", "", "b"]) is None
    assert grade(TWEETS, ["a", "", "b"], ["a", "x", "b"]) == pytest.approx(2 / 3)
    assert grade(QUESTIONS, ["a", "", "b"], ["a", "", "b"]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("guess", [["1", "", "3"], ["", "", ""], ["1", "inf", "3"], ["0.1", "0.1", "0.1"]])
def test_a_correlation_that_does_not_exist_is_a_score(guess: list[str]) -> None:
    score = grade(PHRASES, ["0.5", "0", "0.25"], guess)
    assert score is not None
    assert math.isnan(score)


def test_text_has_no_correlation_and_truth_values_do() -> None:
    assert grade(PHRASES, ["0.5", "0", "0.25"], ["a", "0", "1"]) is None
    assert grade(PHRASES, ["0.5", "0", "0.25"], ["True", "False", "False"]) == pytest.approx(0.8660254)
    assert grade(PHRASES, ["0.5", "0", "0.25"], ["True", "", "False"]) is None
