"""Run groups as they would be after real work: scores drawn around the human leaderboards."""

import json
import math
import random
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from mlebench.core.leases import acquire
from mlebench.core.paths import GroupPaths, RunPaths, trajectory
from mlebench.records import read, write
from mlebench.records.group import GroupRecord
from mlebench.records.run import RUNNING, RunRecord
from mlebench.registry import Competition, Registry
from mlebench.scoring import Medals, Thresholds, read_leaderboard
from support.records import make_record

GIB = 1 << 30


def make_group(
    runs_dir: Path,
    name: str,
    competitions: Sequence[str],
    *,
    skill: float = 0.5,
    seeds: int = 3,
    states: Sequence[str] = ("ended",),
    **values: Any,
) -> Path:
    """A group of an agent whose rank on leaderboards scatters around `skill`, 0 being last and 1 first."""
    random_ = random.Random(f"{name} {skill}")
    id = f"2026-11-0{1 + random_.randrange(9)}T10-00-00-GMT_run-group_{name}"
    where = GroupPaths(runs_dir / id)
    where.root.mkdir(parents=True)
    asked: dict[str, Any] = {
        "agent": {"name": name, "identity": name, "model": None, "scaffold": None},
        "agent_source": name,
        "data_dir": str(runs_dir.parent / "data"),
        "profile": "v1",
        "twin": False,
        "sandbox": "bubblewrap",
        "limits": {
            "seconds": 86400.0,
            "memory": 64 * GIB,
            "cpus": 8.0,
            "processes": 4096,
            "disk": 200 * GIB,
            "inodes": 10**7,
        },
        "workers": 4,
        "machine": {"cpu": "made up", "cpus": 32},
    }
    record = make_record(
        GroupRecord,
        id=id,
        created_at="2026-11-01T10:00:00.000+00:00",
        competitions=list(competitions),
        seeds=seeds,
        **(asked | values),
    )
    write(where.record, record)
    registry = Registry(record.data_dir)
    for seed in range(seeds):
        for number, competition in enumerate(competitions):
            state = states[(seed * len(competitions) + number) % len(states)]
            run = _run(registry.get_competition(competition), seed, state, skill, random_, record)
            folder = where.run(competition, run.run_id)
            folder.root.mkdir()
            write(folder.record, run)
            if state == RUNNING:
                acquire(folder.leases)  # by this process, which is alive
    return where.root


def _run(
    competition: Competition, seed: int, state: str, skill: float, random_: random.Random, group: GroupRecord
) -> RunRecord:
    made = {
        "run_id": f"{random_.getrandbits(48):012x}",
        "competition": competition.id,
        "seed": seed,
        "state": state,
        "planned_at": "2026-11-01T10:00:00.000+00:00",
    }
    if state == "planned":
        return make_record(RunRecord, **made)
    attempt = {"number": 1, "token": "t", "host": "node1", "started_at": "2026-11-01T10:00:05.000+00:00"}
    if state == "running":
        return make_record(RunRecord, **made, started_at=attempt["started_at"], attempts=[attempt])
    report = report_of(competition, _score(competition, skill, random_), group)
    seconds = random_.uniform(600, 86400)
    return make_record(
        RunRecord,
        **made,
        ended="finished" if report["submission_exists"] else "timeout",
        submission="present" if report["submission_exists"] else "none",
        report=report,
        attempts=[attempt | {"ended": "finished", "detail": None, "ended_at": "2026-11-02T10:00:00.000+00:00"}],
        started_at=attempt["started_at"],
        ended_at="2026-11-02T10:00:00.000+00:00",
        seconds=round(seconds, 3),
        gpu_hours=round(seconds / 3600, 6),
        conditions={
            "sandbox": "bubblewrap",
            "version": "0.8.0",
            "sealed": group.network != "full",
            "unsealed_by": ["the network is open"] if group.network == "full" else [],
            "network": group.network,
            "limits": group.limits,
            "gpus": ["0"],
            "data": "0" * 64,
            "source": "twin" if group.twin else "real",
            "profile": "v1",
            "description": "named",
            "knowledge": None,
            "kept": {"cpu": "enforced", "memory": "enforced"},
            "used": {"memory_peak": 3 * GIB},
        },
    )


def _score(competition: Competition, skill: float, random_: random.Random) -> float | None:
    if random_.random() < 0.05:
        return None
    board = read_leaderboard(competition.leaderboard)
    ease = random.Random(competition.id).gauss(0, 0.25)
    place = 1 - min(1.0, max(0.0, skill + ease + random_.gauss(0, 0.08)))
    return board[min(len(board) - 1, math.floor(place * len(board)))]


def report_of(competition: Competition, score: float | None, group: GroupRecord) -> dict[str, Any]:
    board = read_leaderboard(competition.leaderboard)
    thresholds = Thresholds.of(board)
    medals = Medals.of(score, thresholds, lower=competition.lower_is_better)
    return {
        "competition_id": competition.id,
        "score": score,
        **{f"{name}_threshold": value for name, value in thresholds._asdict().items()},
        "any_medal": any(medals[1:]),
        **medals._asdict(),
        "submission_exists": score is not None,
        "valid_submission": score is not None,
        "is_lower_better": competition.lower_is_better,
        "created_at": "2026-11-02T10:00:00",
        "submission_path": "submission.csv",
        "status": "graded" if score is not None else "missing",
        "profile": "v1",
        "source": "twin" if group.twin else "real",
    }


def fill_run(run: Path, *, submissions: Sequence[float] = (60.0, 900.0, 4000.0), steps: int = 6) -> None:
    """What an agent would have left in the folder of an ended run: its output, code, submissions and story."""
    record = read(RunPaths(run).record, RunRecord)
    where = RunPaths(run)
    for folder in (where.logs, where.code, where.submission.parent, where.snapshots):
        folder.mkdir(exist_ok=True)
    where.log.write_text("".join(f"[{n:5}] epoch {n}  loss {1 / (n + 1):.4f}\n" for n in range(400)), encoding="utf-8")
    table = "id,target\n" + "".join(f"row-{n},{(n * 7919) % 1000 / 1000}\n" for n in range(500))
    where.submission.write_text(table, encoding="utf-8")
    (where.code / "train.py").write_text(
        "import pandas as pd\n\ntrain = pd.read_csv('train.csv')\n" * 20, encoding="utf-8"
    )
    (where.code / "features").mkdir(exist_ok=True)
    (where.code / "features" / "build.py").write_text("def build(frame):\n    return frame\n", encoding="utf-8")
    for seconds in submissions:
        (where.snapshots / f"{seconds:010.1f}.csv").write_text(table, encoding="utf-8")
    begun = datetime.fromisoformat(str(record.started_at or record.planned_at)).timestamp()
    lines: list[dict[str, Any]] = [{"kind": "start", "time": begun, "agent": "made up", "model": "some-model"}]
    for step in range(steps):
        at = {"step": step, "time": begun + 10 + step * 300}
        lines += [
            {
                "kind": "thought",
                **at,
                "text": "The score has stalled. I try a gradient boosting model with target encoding.",
            },
            {"kind": "call", **at, "model": "some-model", "input_tokens": 1200, "output_tokens": 340, "cost": 0.0123},
            {"kind": "action", **at, "name": "python", "text": f"python train.py --fold {step}"},
            {"kind": "output", **at, "text": "fold done\n" * (3 if step % 2 else 40), "exit_code": 0, "seconds": 241.5},
            {"kind": "validation", **at, "metric": "auc", "value": 0.8 + step / 100, "higher_is_better": True},
        ]
    trajectory(where.logs).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
