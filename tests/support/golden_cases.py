"""Golden figures: prepared twins, with the reference's results for them."""

import math
from functools import cache
from pathlib import Path
from typing import Any

from mlebench.contract.golden import read_golden
from mlebench.grade import grade_csv
from mlebench.registry import Competition, Registry

GOLDEN = Path(__file__).parents[1] / "golden"
DEFAULT_TWIN = "seed 0, size 1.0"
# The first case is the default twin; the third is half as large.
CASES = {"one": slice(1), "two": slice(0, 3, 2), "all": slice(None)}


def score_or_verdict(path: Path, competition: Competition) -> float | str | None:
    """What a submission gets, in the form of golden figures."""
    report = grade_csv(path, competition)
    if report.status != "graded":
        return report.status
    return "nan" if report.score is not None and math.isnan(report.score) else report.score


def golden_cases(which: slice = CASES["all"]) -> list[tuple[str, str]]:
    """(competition, case) for every competition; one without golden figures fails when it is used."""
    return [
        (id, name)
        for id in Registry().list_competition_ids()
        for name in list(golden_figures(id) or {DEFAULT_TWIN: None})[which]
    ]


@cache
def golden_figures(id: str) -> dict[str, Any] | None:
    path = GOLDEN / f"{id}.json"
    return read_golden(path) if path.is_file() else None
