"""Shows:  how to grade runs that your agent made without mlebench.
Run:    python examples/grade_own_runs.py RUNS
        The submissions are RUNS/<competition>/<seed>/submission.csv; a seed without one is a failed run. The data must
        be prepared: mlebench prepare -c ID --twin
Prints: a line for each run, and how many medals there are. Standings: mlebench report --reports RUNS/graded/*.json
"""

import json
import sys
from pathlib import Path

from mlebench.grade import grade_jsonl

runs = Path(sys.argv[1])
seeds = [folder for folder in sorted(runs.glob("*/*")) if folder.is_dir()]
with (runs / "submissions.jsonl").open("w", encoding="utf-8") as file:
    for folder in seeds:
        line = {"competition_id": folder.parent.name, "submission_path": str(folder / "submission.csv")}
        file.write(json.dumps(line) + "\n")

summary = grade_jsonl(runs / "submissions.jsonl", runs / "graded", jobs=2)
for folder, report in zip(seeds, summary["competition_reports"], strict=True):
    medal = next((kind for kind in ("gold", "silver", "bronze") if report[f"{kind}_medal"]), "none")
    print(f"{folder.relative_to(runs)}: {report['status']}, score {report['score']}, medal {medal}")
print(f"{summary['total_medals']} medals in {summary['total_runs']} runs")
