"""Molecules with nearly the same sequence are on one side of the split (S19); rows are paired by id (G7)."""

import numpy as np
import pandas as pd

from mlebench.kit import (
    Output,
    Raw,
    Table,
    accepts_paths,
    align,
    groups_of_sequences,
    is_in,
    sorting_order,
    split_whole_groups,
    values_of,
)
from mlebench.metrics import rmse

from .grade import SCORED
from .prepare import good_rows, prepare_sides, size_of_test

BASES = 10  # of about a hundred, in which sequences of related molecules differ at most


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    records = raw.records("train.json")
    groups = np.array(groups_of_sequences(records["sequence"].tolist(), distance=BASES))
    good = good_rows(records)
    _, chosen = split_whole_groups(good, groups[good], test_size=size_of_test(records), seed=0)
    # Molecules of poor quality that are like those of the test set are on neither side.
    train, test = records.where(~is_in(groups, groups[chosen])), records.take(chosen)
    prepare_sides(train, test, raw, public, private)
    private.write("groups.csv", Table.from_columns({"id": test["id"], "group": groups[chosen]}))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    """The mean over columns of the root mean squared error, at the positions that were measured."""
    y_pred, y_true = align(submission, answers, id="id_seqpos", target=SCORED, values="numbers")
    keep = values_of(answers["keep"])[sorting_order(values_of(answers["id_seqpos"]), "id_seqpos")]
    pairs = zip(y_true[keep].T, y_pred[keep].T, strict=True)
    return sum(rmse(truth, predicted, scaled=True) / len(SCORED) for truth, predicted in pairs)
