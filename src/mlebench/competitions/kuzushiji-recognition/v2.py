"""Pages of one book are on one side (S13), and a page has at most 1200 predicted characters, as originally (G26)."""

import re

import pandas as pd

from mlebench.kit import InvalidSubmissionError, Output, Raw, accepts_paths, split_whole_groups

from .grade import grade as grade_any_number
from .prepare import write_sides

MOST = 1200
BOOK = re.compile("[a-z]+|[0-9]+")  # of a page such as 100241706_00004_2 or umgy003-008


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    pages = raw.table("train.csv")
    train, test = split_whole_groups(pages, [_book(id) for id in pages["image_id"].tolist()], test_size=0.1, seed=0)
    write_sides(train, test, raw, public, private)


def _book(page: str) -> str:
    named = BOOK.match(page)
    return named[0] if named else page


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    if (submission["labels"].str.split().str.len() > 3 * MOST).any():
        raise InvalidSubmissionError(f"Column `labels` must hold at most {MOST} characters for each page.")
    return grade_any_number(submission, answers)
