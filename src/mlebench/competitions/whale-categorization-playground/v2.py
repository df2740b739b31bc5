"""Pictures that look alike are on one side (S12); one to five different whales are guessed for each (G21).

Which picture of a whale is for testing does not follow from a published seed and its name (L13).
"""

import numpy as np
import pandas as pd

from mlebench.kit import (
    Output,
    Raw,
    accepts_paths,
    align,
    groups_of_pictures,
    is_in,
    renumber,
    secret_random,
    split_guesses,
    write_groups,
)
from mlebench.metrics import mean_reciprocal_rank_at_k

from .prepare import prepare_sides, rows_for_test


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    labels = raw.table("train.csv")
    images, whales = labels["Image"], labels["Id"]
    groups = np.array(groups_of_pictures([raw.file(f"train/{image}") for image in images]), dtype=object)
    order = list(range(len(labels)))
    secret_random(whales).shuffle(order)  # sizes of files would be no secret: names tell the order of the raw table
    in_test = _rows_of_whole_groups(renumber(groups), whales, np.array(order))
    prepare_sides(labels, in_test, raw, public, private)
    write_groups(private, images[in_test], groups[in_test])


def _rows_of_whole_groups(groups: np.ndarray, whales: np.ndarray, order: np.ndarray) -> np.ndarray:
    """A mask of the rows to test: v1's rule for one row of each group, which the others follow.

    The rule meets the rows in a secret `order`, so that a name does not tell which picture of a whale it takes. A whale
    with several images keeps one in train, even if all of them look alike.
    """
    _, firsts = np.unique(groups[order], return_index=True)
    met = order[np.sort(firsts)]
    in_test = np.isin(groups, groups[met][rows_for_test(renumber(whales[met]))])
    numbers = renumber(whales)
    several = np.bincount(numbers)[numbers] > 1
    lost = np.flatnonzero(in_test & several & ~is_in(whales, whales[~in_test]))
    _, first_of_whale = np.unique(numbers[lost], return_index=True)
    in_test[np.isin(groups, groups[lost[first_of_whale]])] = False
    return in_test


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    predicted, true = align(submission, answers, id="Image", target="Id", values="text")
    return mean_reciprocal_rank_at_k(true, split_guesses("Id", predicted, most=5), k=5)
