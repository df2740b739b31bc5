from pathlib import Path

import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, align, read_frame
from mlebench.metrics import Boxes, Points, points_in_boxes_f1


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    predicted, true = align(submission, answers, id="image_id", target="labels", values="words")
    points = [_points(page) for page in predicted]
    return points_in_boxes_f1([Boxes(*_characters(page, 5)) for page in true], points)


def stand_in(public: Path) -> pd.DataFrame:
    """Answers are boxes, where a submission has points."""
    return read_frame(public / "sample_submission.csv").assign(labels="U+003F 1 1 10 10")


def _points(page: str) -> Points:
    try:
        return Points(*_characters(page, 3))
    except ValueError as error:
        raise InvalidSubmissionError(
            f"Column `labels` must hold `character x y` for each character, all separated by single spaces; {error}."
        ) from None


def _characters(page: str, parts: int) -> tuple[list[str], *tuple[np.ndarray, ...]]:
    """The labels of a page's characters, then each of the numbers that follow them. Whatever Python reads is one."""
    words = page.split(" ") if page else []
    if len(words) % parts:
        raise ValueError(f"{len(words)} parts do not make whole characters, in {page[:40]!r}")
    numbers = (np.array(list(map(float, words[place::parts]))) for place in range(1, parts))
    return words[::parts], *numbers
