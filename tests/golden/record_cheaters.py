"""Record what cheaters get under both profiles, for docs/understanding/profile-v2.md.

    python tests/golden/record_cheaters.py

writes tests/competitions/cheaters.csv: for each cheater how much of the way from chance to gold it gets on the default
twin. `test_cheaters.py` compares.
"""

import csv
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.cheater_comparison import all_cheaters, compare
from support.cheaters import Cheater

from mlebench.data.pipeline import prepare
from mlebench.data.sources import TwinSource
from mlebench.registry import Registry


def main() -> None:
    target = Path(__file__).parents[1] / "competitions" / "cheaters.csv"
    with tempfile.TemporaryDirectory() as folder:
        rows = [_row(cheater, Path(folder)) for cheater in all_cheaters()]
    with target.open("w", newline="") as lines:
        csv.writer(lines, lineterminator="\n").writerows([("id", "competition", "v1", "v2"), *sorted(rows)])


def _row(cheater: Cheater, folder: Path) -> tuple[str, str, str, str]:
    gains = []
    for profile in ("v1", "v2"):
        competition = Registry(folder, profile).get_competition(cheater.competition)
        prepare(competition, TwinSource())
        gains.append(compare(cheater, competition, folder).text)
    print(cheater.name, *gains, file=sys.stderr)
    return (cheater.defect, cheater.competition, *gains)


if __name__ == "__main__":
    main()
