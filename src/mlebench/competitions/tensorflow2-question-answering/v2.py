"""All questions about a page are on one side of the split (S16), and the score is the original's F1 (G10).

Only right answers are hits: rows that rightly have none count neither for nor against a submission.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from mlebench.kit import Output, Raw, Table, accepts_paths, as_text, renumber, split_whole_groups
from mlebench.metrics import probabilistic_f1

from .grade import outcomes, right_answers
from .prepare import examples_of, write_parts


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    examples = examples_of(raw)
    pages = _pages_of(examples)
    train, test = split_whole_groups(np.arange(len(examples)), pages, test_size=0.1, seed=0)
    gold = write_parts(examples.take(train), examples.take(test), public, private)
    groups = np.repeat(pages[test], len(gold) // len(test))  # a row for each answer of an example
    private.write("groups.csv", gold.select("example_id").rename({"example_id": "id"}).assign(group=groups))


def _pages_of(examples: Table) -> np.ndarray:
    """Numbers of pages. An address also names the revision, and texts of revisions are much alike."""
    pages = [url.partition("&amp;oldid=")[0] for url in as_text(examples["document_url"])]
    return renumber(np.array(pages, dtype=object))


def grade(submission: pd.DataFrame, answers: Iterable[dict[str, Any]]) -> float:
    right = right_answers(answers)
    expected, answered = outcomes(submission["example_id"], submission["PredictionString"], right)
    return np.float64(probabilistic_f1(expected, answered))  # which is F1, where nothing lies between 0 and 1
