"""Recordings of one place and day are on one side (S14), each table has its own header (F9), any number ranks (G18)."""

import numpy as np
import pandas as pd

from mlebench.kit import Output, Raw, Table, accepts_paths, align, split_whole_groups
from mlebench.metrics import auroc

from .prepare import pairs_of, prepare_recordings


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    test = prepare_recordings(_by_place_and_day, None, raw, public, private)
    ids = pairs_of(list(test))["Id"].tolist()
    groups = [_place_and_day(test[id // 100]) for id in ids]
    private.write("groups.csv", Table.from_columns({"id": ids, "group": groups}))


def _by_place_and_day(names: list[str]) -> np.ndarray:
    groups = [_place_and_day(name) for name in names]
    _, test = split_whole_groups(np.arange(len(names)), groups, test_size=round(0.2 * len(names)), seed=0)
    return test


def _place_and_day(name: str) -> str:
    """Of a name like PC1_20090601_050000_0010: PC1_20090601."""
    return "_".join(name.split("_")[:2])


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="Id", target="Probability", values="numbers")
    return auroc(y_true, y_pred)
