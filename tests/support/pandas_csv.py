"""What pandas prints where its bytes are pinned: on Python 3.11."""

import sys
from typing import Any

import pandas as pd

STAND_IN = "\x01"  # an ordinary character to every csv module, as a lone carriage return is to Python 3.11's


def pandas_prints(frame: pd.DataFrame, **style: Any) -> bytes:
    """A frame as `to_csv` prints it on Python 3.11; carriage returns are hidden from newer csv modules."""
    if sys.version_info >= (3, 13):
        frame = frame.assign(**{name: _hidden(frame[name]) for name in frame if frame[name].dtype.kind == "O"})
    printed = frame.to_csv(index=False, lineterminator="\n", **style)
    return (printed if sys.version_info < (3, 13) else printed.replace(STAND_IN, "\r")).encode()


def _hidden(column: pd.Series) -> pd.Series:
    cells = [cell.replace("\r", STAND_IN) if isinstance(cell, str) else cell for cell in column.tolist()]
    return pd.Series(cells, column.index, dtype=object)
