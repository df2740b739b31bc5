"""Programs that use one defect of profile v1 and nothing else: `test_cheaters.py` runs each under both profiles.

A module is for one defect; it registers a cheater for each competition that has it. A cheater sees the public folder,
as an agent does, and returns a submission. It returns None where what it uses is not there.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

Cheat = Callable[[Path], pd.DataFrame | None]


class Cheater(NamedTuple):
    """How an agent that knows a defect gets a score without solving the task."""

    defect: str  # its id in the competition's known issues
    competition: str
    cheat: Cheat
    refused: bool = False  # under v2 what it hands in is not even valid

    @property
    def name(self) -> str:
        return f"{self.defect}-{self.competition}"


CHEATERS: list[Cheater] = []


def cheater(defect: str, competition: str, *, refused: bool = False) -> Callable[[Cheat], Cheat]:
    """Register a function as the cheater for a defect of a competition."""

    def register(cheat: Cheat) -> Cheat:
        CHEATERS.append(Cheater(defect, competition, cheat, refused))
        return cheat

    return register
