from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, read_frame, require_columns, require_rows, values_of
from mlebench.metrics import accuracy

Answer = tuple[int, int] | str
RightAnswers = dict[str, list[Answer]]  # by the ids of a submission
UNANSWERED: dict[str, Any] = {
    "yes_no_answer": "NONE",
    "long_answer": {"start_token": -1, "end_token": -1},
    "short_answers": [],
}


def grade(submission: pd.DataFrame, answers: Iterable[dict[str, Any]]) -> float:
    """The published score is F1 micro-averaged over both classes of the outcomes, which is the share of equal pairs."""
    right = right_answers(answers)
    require_columns(submission, ["example_id", "PredictionString"])
    require_rows(submission, len(right))
    ids = _texts(submission, "example_id")
    _check_ids(ids, right)
    return np.float64(accuracy(*outcomes(ids, _texts(submission, "PredictionString"), right)))


def stand_in(public: Path) -> list[dict[str, Any]]:
    """The examples to answer, as if none had an answer."""
    ids = read_frame(public / "sample_submission.csv")["example_id"]
    examples = [id.removesuffix("_long") for id in ids if id.endswith("_long")]
    return [{"example_id": id, "annotations": [UNANSWERED]} for id in examples]


def outcomes(ids: Iterable[str], texts: Iterable[str], right: RightAnswers) -> tuple[np.ndarray, np.ndarray]:
    """A pair for each row: is its answer right or, if it gives none, is there one? And does it give an answer?"""
    answers = [_parse(text) for text in texts]
    expected = [answer in right[id] if answer else bool(right[id]) for id, answer in zip(ids, answers, strict=True)]
    return np.array(expected), np.array([bool(answer) for answer in answers])


def right_answers(examples: Iterable[dict[str, Any]]) -> RightAnswers:
    """For each id of a submission, all right answers; only an example's first annotation counts."""
    right: RightAnswers = {}
    for example in examples:
        annotation = example["annotations"][0]
        long, yes_or_no = annotation["long_answer"], annotation["yes_no_answer"]
        short: list[Answer] = [_span(answer) for answer in annotation["short_answers"]]
        right[f"{example['example_id']}_long"] = [_span(long)] if long["start_token"] != -1 else []
        right[f"{example['example_id']}_short"] = short + [yes_or_no] * (yes_or_no != "NONE")
    return right


def _span(tokens: dict[str, int]) -> Answer:
    return int(tokens["start_token"]), int(tokens["end_token"])


def _texts(submission: pd.DataFrame, name: str) -> list[str]:
    return ["" if pd.isna(value) else str(value) for value in values_of(submission[name])]


def _check_ids(ids: list[str], expected: Collection[str]) -> None:
    unknown = [id for id in ids if id not in expected]
    if unknown:
        raise InvalidSubmissionError(
            f"Column `example_id` holds {len(unknown)} unknown ids (first: {unknown[0][:40]!r}); "
            "each example needs one row `<id>_long` and one `<id>_short`."
        )
    if len(set(ids)) != len(ids):
        raise InvalidSubmissionError("Column `example_id` holds some ids twice.")


def _parse(text: str) -> Answer:
    """`start:end`, YES, NO, or nothing for no answer. Whatever Python reads as whole numbers is a span."""
    text = text.strip()
    if text in ("YES", "NO", ""):
        return text
    try:
        start, end = map(int, text.split(":"))
    except ValueError:
        raise InvalidSubmissionError(
            f"Column `PredictionString` must hold `start:end`, YES, NO or nothing, not {text[:40]!r}."
        ) from None
    return start, end
