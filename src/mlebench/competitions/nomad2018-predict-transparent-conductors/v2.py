"""Materials that agree in all inputs of the table are on one side of the split (S21).

Rows are paired by id, in any order (G7).
"""

import numpy as np
import pandas as pd

from mlebench.kit import (
    InvalidSubmissionError,
    Output,
    Raw,
    Table,
    accepts_paths,
    align,
    join_text,
    renumber,
    split_whole_groups,
)
from mlebench.metrics import rmsle

from .prepare import TARGETS, materials_of, write_parts


@accepts_paths
def prepare(raw: Raw, public: Output, private: Output) -> None:
    materials = materials_of(raw)
    train, test = split_whole_groups(materials, _inputs(materials), test_size=0.1, seed=0)
    write_parts(train, test, raw, public, private)
    ids, groups = renumber(test["id"], start=1), renumber(_inputs(test), start=1)
    private.write("groups.csv", Table.from_columns({"id": ids, "group": groups}))


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    y_pred, y_true = align(submission, answers, id="id", target=[*TARGETS], values="numbers")
    if (y_pred < 0).any():
        raise InvalidSubmissionError("The submission has negative energies; the logarithmic error has no value there.")
    return np.float64(np.mean([rmsle(*column) for column in zip(y_true.T, y_pred.T, strict=True)]))


def _inputs(materials: Table) -> np.ndarray:
    """All that the table says about each material, apart from its id and its energies, as one text."""
    return join_text(*(part for name in materials.drop("id", *TARGETS).columns for part in (materials[name], " ")))
