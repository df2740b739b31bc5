"""Runs the programs of `failing_programs.py` through `mlebench run` on twins, and freezes what they leave.

    PYTHONPATH=tests python tests/support/failed_runs.py SCRATCH

writes tests/integrity/failures/<name>.json: the label, the run's record, the ends of its logs and its submission. A
hash of the name decides which half is held out. Done before the rules were written; see
docs/understanding/inspecting.md.
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from support.failing_programs import BY_SCORE, CASES, MODEL, PIZZA, TAXI, TITANIC, Case

FROZEN = Path(__file__).parents[1] / "integrity" / "failures"
LIMITS = {"seconds": 25.0, "memory": 500 << 20, "shm": 16 << 20, "disk": 60 << 20}
BY_HAND = ("infrastructure", "cancelled")
KEPT_OF_CONDITIONS = ("sandbox", "sealed", "unsealed_by", "network", "used")
KEPT_OF_REPORT = (
    *(
        "score",
        "status",
        "reason",
        "any_medal",
        "gold_medal",
        "silver_medal",
        "bronze_medal",
        "above_median",
        "suspicious",
    ),
    *("median_threshold", "is_lower_better", "percentile", "source"),
)
LONGEST_LOG = 6000


def held_out(name: str) -> bool:
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 0


def main(scratch: Path) -> None:
    mlebench(scratch, "prepare", "--twin", *(word for id in (TITANIC, PIZZA, TAXI) for word in ("-c", id)))
    FROZEN.mkdir(exist_ok=True)
    for sealed in (True, False):
        for id in (TITANIC, PIZZA, TAXI):
            cases = [case for case in CASES if (case.sealed, case.competition) == (sealed, id)]
            usual = [case for case in cases if case.category not in BY_HAND]
            if usual:
                group = plan(scratch, usual)
                mlebench(scratch, "run", "--resume", str(group))
                freeze(scratch, group, usual)
            for case in (case for case in cases if case.category in BY_HAND):
                group = plan(scratch, [case])
                (infrastructure if case.category == "infrastructure" else cancelled)(scratch, group)
                freeze(scratch, group, [case])


def plan(scratch: Path, cases: list[Case]) -> Path:
    """A group with a seed for each case; planned only, so that limits can be set that have no option."""
    from mlebench.registry import Registry
    from support.groups import plan_group

    python = "python3" if cases[0].sealed else sys.executable
    group = plan_group(
        Registry(scratch / "data").get_competition(cases[0].competition),
        scratch / "runs",
        agent=str(agent_folder(scratch, cases, python)),
        sandbox="bubblewrap" if cases[0].sealed else "process",
        seeds=len(cases),
        workers=3,
        cpus=1,
    )
    record = json.loads(group.paths.record.read_text())
    record["limits"] |= LIMITS
    group.paths.record.write_text(json.dumps(record))
    return group.paths.root


def agent_folder(scratch: Path, cases: list[Case], python: str) -> Path:
    folder = scratch / f"agent-{time.monotonic_ns()}"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"{folder.name}: {{start: {folder.name}/start.sh}}\n")
    (folder / "model.py").write_text(MODEL)
    for seed, case in enumerate(cases):
        (folder / f"{seed}.{'sh' if case.program.startswith('#!bash') else 'py'}").write_text(case.program.lstrip("\n"))
    (folder / "start.sh").write_text(
        'cd "$AGENT_DIR"\nif [ -f $SEED.sh ]; then exec bash $SEED.sh; fi\n'
        f"mv $SEED.py main.py\nexec {python} -u main.py\n"
    )
    return folder


def mlebench(scratch: Path, *words: str) -> None:
    env = {**os.environ, "MLEBENCH_DATA_DIR": str(scratch / "data")}
    subprocess.run([sys.executable, "-m", "mlebench", *words], env=env, check=False)


def infrastructure(scratch: Path, group: Path) -> None:
    """A run whose agent changes after planning, so that no attempt can begin."""
    record = json.loads((group / "group.json").read_text())
    (Path(record["agent_source"].partition("#")[0]) / "model.py").write_text("")
    (run,) = group.glob("*/run.json")
    for _ in range(3):
        mlebench(scratch, "run", "exec", str(run.parent))


def cancelled(scratch: Path, group: Path) -> None:
    (run,) = group.glob("*/run.json")
    env = {**os.environ, "MLEBENCH_DATA_DIR": str(scratch / "data")}
    running = subprocess.Popen([sys.executable, "-m", "mlebench", "run", "exec", str(run.parent)], env=env)
    time.sleep(10)
    running.send_signal(signal.SIGTERM)
    running.wait()


def freeze(scratch: Path, group: Path, cases: list[Case]) -> None:
    for run in sorted(group.glob("*/run.json")):
        record = json.loads(run.read_text())
        case = cases[record["seed"]]
        label = asdict(case) | {"category": by_score(record) if case.category == BY_SCORE else case.category}
        kept = {
            **{name: label[name] for name in ("name", "competition", "category", "cause", "also")},
            "held_out": held_out(case.name),
            "record": condensed(record),
            "files": {},
        }
        names = [
            "run.log",
            "submission/submission.csv",
            *(f"logs/{name}" for name in ("validation.json", "trajectory.jsonl")),
        ]
        for name in names:
            if (run.parent / name).is_file():
                text = (run.parent / name).read_bytes().decode("utf-8", "replace")
                kept["files"][name] = text if name.endswith(".csv") else shortened(neutral(text, scratch))
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in kept.items())
        text = neutral(f"{{{lines}}}", scratch)
        (FROZEN / f"{case.name}.json").write_text(text + "\n")


def by_score(record: dict[str, Any]) -> str:
    report = record["report"]
    return "medal" if report["any_medal"] else "above_median" if report["above_median"] else "below_median"


def condensed(record: dict[str, Any]) -> dict[str, Any]:
    record["attempts"] = [
        {**attempt, "host": "host", "token": "token", "keeper": None} for attempt in record["attempts"]
    ]
    record["conditions"] = {key: record["conditions"][key] for key in KEPT_OF_CONDITIONS if key in record["conditions"]}
    if record["report"]:
        record["report"] = {key: record["report"][key] for key in KEPT_OF_REPORT}
    return record


def shortened(text: str) -> str:
    if len(text) <= LONGEST_LOG:
        return text
    return f"{text[: LONGEST_LOG // 3]}\n… {len(text) - LONGEST_LOG} characters …\n{text[-LONGEST_LOG * 2 // 3 :]}"


def neutral(text: str, scratch: Path) -> str:
    """Without the paths of the machine it was made on."""
    text = re.sub(re.escape(str(scratch)) + r"/runs/[^/\s\"']+/\.work/\w+", "", text)
    text = text.replace(str(scratch), "/mnt/scratch")
    text = re.sub(r"[^\s\"']*/site-packages", "/opt/venv/lib/python3/site-packages", text)
    return re.sub(r"(/[\w.+-]+)+/lib/python3\.\d+", "/usr/lib/python3", text)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
