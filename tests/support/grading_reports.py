"""Grading reports and run groups, as files."""

import json
from itertools import count
from pathlib import Path
from typing import Any

from mlebench.core.paths import GroupPaths
from mlebench.records import write
from mlebench.records.group import GroupRecord
from mlebench.records.run import RunRecord
from support.records import TIME, make_record

_MOMENTS = count()


def report(id: str, medal: str | None = None, **values: Any) -> dict[str, Any]:
    """A report in the reference's form: sixteen fields."""
    return {
        "competition_id": id,
        "score": 0.5,
        "gold_threshold": 0.9,
        "silver_threshold": 0.8,
        "bronze_threshold": 0.7,
        "median_threshold": 0.6,
        "any_medal": medal is not None,
        **{f"{kind}_medal": kind == medal for kind in ("gold", "silver", "bronze")},
        "above_median": medal is not None,
        "submission_exists": True,
        "valid_submission": True,
        "is_lower_better": False,
        "created_at": f"2024-10-08T00:00:00.{next(_MOMENTS):06}",
        "submission_path": "submission.csv",
        **values,
    }


def write_reports(path: Path, reports: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"total_runs": len(reports), "competition_reports": reports}), encoding="utf-8")
    return path


def write_group(runs_dir: Path, name: str, runs: list[dict[str, Any]], **values: Any) -> Path:
    """A run group; each run is given by what is special about it."""
    where = GroupPaths(runs_dir / name)
    competitions = list(dict.fromkeys(run["competition"] for run in runs))
    asked: dict[str, Any] = {
        "agent": {"name": "mine", "identity": "1", "model": None},
        "agent_source": "mine",
        "seeds": 1,
        "data_dir": "data",
        "profile": "v1",
        "twin": False,
        "sandbox": "bubblewrap",
        "limits": {"seconds": 86400},
    }
    record = make_record(GroupRecord, id=name, created_at=TIME, competitions=competitions, **(asked | values))
    where.root.mkdir(parents=True)
    write(where.record, record)
    for number, run in enumerate(runs):
        usual: dict[str, Any] = {
            "run_id": f"{name}-run{number}",
            "planned_at": TIME,
            "state": "ended",
            "ended": "finished",
        }
        made = make_record(RunRecord, **({"seed": 0} | usual | run))
        folder = where.run(made.competition, made.run_id)
        folder.root.mkdir()
        write(folder.record, made)
    return where.root
