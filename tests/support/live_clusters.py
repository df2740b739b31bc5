"""What the tests on real schedulers share: engines that `.ci/clusters` sets up, and the guarantees to check."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mlebench.records.run_groups import Group
from support.run_fixtures import reports_of
from support.sandboxes import processes
from support.waiting import wait_until

SCRIPT = Path(__file__).parents[2] / ".ci" / "clusters"
WHOLE = os.environ.get("MLEBENCH_CLUSTERS") == "whole"
NOBODY = 65534


def require(*programs: str) -> None:
    """Skip, by name, unless real schedulers are requested and available."""
    if not os.environ.get("MLEBENCH_CLUSTERS"):
        pytest.skip("real schedulers are only tried with MLEBENCH_CLUSTERS=1")
    if os.geteuid() != 0:
        pytest.skip("only root can set up the nodes of a cluster")
    for name in programs:
        if shutil.which(name) is None and not Path(f"/usr/sbin/{name}").exists():
            pytest.skip(f"there is no {name}: `.ci/clusters install`")


def clusters(*words: object) -> str:
    done = subprocess.run([SCRIPT, *map(str, words)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def states(group: Group) -> list[str]:
    return [run.record.state for run in group.runs()]


def check_promises(group: Group, count: int, ended: str = "finished") -> None:
    """Every run has one final state and one result, every attempt says how it ended, and no process is left."""
    group = Group.read(group.paths.root)
    runs = list(group.runs())
    assert [run.record.seed for run in runs] == list(range(count))
    for run in runs:
        record = run.record
        assert (record.state, record.ended, record.submission) == ("ended", ended, "present"), record
        assert json.loads((run.paths.result / "record.json").read_text()) == json.loads(run.paths.record.read_text())
        assert [attempt.number for attempt in record.attempts] == list(range(1, len(record.attempts) + 1))
        assert [attempt.ended for attempt in record.attempts if attempt.ended == ended] == [ended]
        assert {attempt.ended for attempt in record.attempts} <= {"cancelled", ended}
        assert not list(run.paths.root.glob("result.*"))
    assert sorted(report["run_id"] for report in reports_of(group)) == sorted(run.record.run_id for run in runs)
    assert not list(group.paths.root.glob(".work/*"))
    wait_until(lambda: not processes(str(group.paths.root)), "no process of the group is left", 60)
    for run in runs:
        for attempt in run.record.attempts:
            assert not processes(attempt.token)
