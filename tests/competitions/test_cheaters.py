"""Every defect that profile v2 corrects helped an agent under v1 and helps no more: one program for each, and proof.

`cheaters.csv` holds the gains, which docs/understanding/profile-v2.md quotes.
"""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from support.cheater_comparison import all_cheaters, compare
from support.cheaters import Cheater

from mlebench.registry import Competition

FAR = 0.2  # of the way from chance to gold


@pytest.mark.parametrize(
    "cheater",
    [pytest.param(each, id=each.name, marks=pytest.mark.xdist_group(each.competition)) for each in all_cheaters()],
)
def test_a_cheater_wins_under_v1_and_not_under_v2(
    cheater: Cheater, default_twin: Callable[..., Competition], tmp_path: Path
) -> None:
    before, after = (default_twin(cheater.competition, profile) for profile in ("v1", "v2"))
    fixed = {issue.id for issue in before.known_issues} - {issue.id for issue in after.known_issues}
    assert cheater.defect in fixed
    won, lost = (compare(cheater, competition, tmp_path) for competition in (before, after))
    assert won.cheated > won.lucky
    assert won.gain > FAR
    assert not won.is_refused
    assert lost.is_luck
    assert lost.is_refused == cheater.refused
    assert _recorded()[cheater.defect, cheater.competition] == (won.text, lost.text), (
        "record them with `python tests/golden/record_cheaters.py`"
    )


def _recorded() -> dict[tuple[str, str], tuple[str, str]]:
    with Path(__file__).with_name("cheaters.csv").open(newline="") as lines:
        return {(row["id"], row["competition"]): (row["v1"], row["v2"]) for row in csv.DictReader(lines)}


def test_only_programs_that_exist_are_recorded() -> None:
    assert [*_recorded()] == sorted((cheater.defect, cheater.competition) for cheater in all_cheaters())
