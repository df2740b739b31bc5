import numpy as np
import pandas as pd

from mlebench.kit import InvalidSubmissionError, column_values, require_columns, require_rows
from mlebench.metrics import rmsle

TARGETS = ("formation_energy_ev_natom", "bandgap_energy_ev")


def grade(submission: pd.DataFrame, answers: pd.DataFrame) -> float:
    # Quirk of v1: rows are paired by position and no id is read, not even a wrong or missing one.
    require_columns(submission, TARGETS)
    require_rows(submission, len(answers))
    return np.float64(np.mean([rmsle(answers[name].to_numpy(), _energies(submission, name)) for name in TARGETS]))


def _energies(submission: pd.DataFrame, name: str) -> np.ndarray:
    energies = column_values(submission, name, "numerals")
    if (energies < 0).any():
        raise InvalidSubmissionError(f"Column `{name}` has negative values; the logarithmic error has no value there.")
    return energies
