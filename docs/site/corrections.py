"""Write the tables of docs/understanding/profile-v2.md: what profile v2 corrects in each competition.

python docs/site/corrections.py
"""

import csv
from pathlib import Path

from mlebench.registry import Competition, Registry

PAGE = Path(__file__).parents[1] / "understanding" / "profile-v2.md"
CHEATERS = Path(__file__).parents[2] / "tests" / "competitions" / "cheaters.csv"
CHEATING = """\
Each row is a program of some twenty lines that uses one fault and nothing else, on the competition's default twin: how
much of the way from chance (the mean of twenty shuffled gold submissions) to gold it gets. `none` is within a tenth of
chance or no better than the best of the shuffled ones; `refused` is an invalid submission. `tests/support/cheaters` has
the programs. On real data a fault may be worth more or less.

There is no program where no single submission can show the gain: L9, L10 and G5 take many gradings or knowledge of the
test rows; what S5 and S22 share tells an agent nothing about a label or a mask on these twins; G13 in
siim-covid19-detection, imet-2020-fgvc7 and plant-pathology-2021-fgvc8 costs nothing, but gains nothing either. L13 in
billion-word-imputation has a test of its own."""
BEGIN, END = "<!-- begin: made by docs/site/corrections.py -->\n", "<!-- end -->\n"


def tables() -> str:
    """The corrected competitions, with a row for each fault; then those that have no profile v2 yet."""
    before, after = Registry(), Registry(profile="v2")
    corrected = after.list_competition_ids()
    lines = [f"{len(corrected)} of the {len(before.list_competition_ids())} competitions have profile v2.", ""]
    lines += ["| competition | board | medals withheld | checked on |", "|---|---|---|---|"]
    lines += [_facts(after.get_competition(id)) for id in corrected]
    lines += ["", "| competition | fault | kind | what was wrong | measured |", "|---|---|---|---|---|"]
    for id in corrected:
        remaining = {issue.id for issue in after.get_competition(id).known_issues}
        issues = [issue for issue in before.get_competition(id).known_issues if issue.id not in remaining]
        lines += [_row(id, issue.id, issue.kind, issue.text, issue.measured) for issue in issues]
    lines += ["", "## What cheating is worth", "", CHEATING, ""]
    lines += ["| competition | fault | under v1 | under v2 |", "|---|---|---|---|"]
    with CHEATERS.open(newline="") as rows:
        lines += [_row(row["competition"], row["id"], row["v1"], row["v2"]) for row in csv.DictReader(rows)]
    return "\n".join([*lines, ""])


def _facts(competition: Competition) -> str:
    withheld = ", ".join(competition.medals_withheld) or "none"
    return _row(competition.id, (competition.board or "").replace("_", " "), withheld, competition.checked_on)


def _row(*cells: str | None) -> str:
    return f"| {' | '.join((cell or '-').replace('|', chr(92) + '|') for cell in cells)} |"


def updated(page: str) -> str:
    """The page with its tables as they are now."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
