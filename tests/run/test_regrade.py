"""`mlebench grade GROUP`: the submissions of a group's runs are graded again."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.run_fixtures import SUBMIT, Mlebench, reports_of

from mlebench.core import leases
from mlebench.records.run_groups import Group
from mlebench.records.snapshots import read_snapshot_scores
from mlebench.registry import Competition

Runner = Callable[..., Group]


@pytest.fixture
def group(run: Runner) -> Group:
    """Three runs: one has submitted, one has not, one has submitted nonsense."""
    nonsense = "echo wrong > $SUBMISSION_DIR/submission.csv"
    return run(f"[ $SEED = 1 ] && exit 1; [ $SEED = 2 ] && {nonsense} || {SUBMIT}", "--seeds", "3")


def test_reports_of_runs_and_of_the_group_are_replaced(
    group: Group, mlebench: Mlebench, titanic: Competition, tmp_path: Path
) -> None:
    first, *_ = group.runs()
    before = reports_of(group)
    first.paths.submission.write_bytes(titanic.gold_submission.read_bytes())  # as if the grader had been fixed
    done = mlebench("grade", group.paths.root.name[:-2], "--runs-dir", str(tmp_path / "runs"))
    counts = json.loads(done.stdout)
    assert (counts["total_runs"], counts["total_valid_submissions"], counts["total_gold_medals"]) == (3, 1, 1)
    after = reports_of(group)
    assert [report["status"] for report in after] == ["graded", "missing", "invalid"]
    assert (after[0]["score"], before[0]["score"] < 1) == (1.0, True)
    assert [report["run_id"] for report in after] == [report["run_id"] for report in before]
    assert [report["agent"] for report in after] == [report["agent"] for report in before]
    assert [one.record.report.score for one in group.runs() if one.record.report] == [1.0, None, None]
    assert Group.read(group.paths.root).record.report in {path.name for path in group.paths.root.iterdir()}
    assert [line.split()[1:3] for line in done.stderr.splitlines() if line.startswith(titanic.id)] == [
        ["0", "graded"],
        ["1", "missing"],
        ["2", "invalid"],
    ]


def test_an_unjudged_run_keeps_its_report(group: Group, mlebench: Mlebench) -> None:
    before = reports_of(group)
    record = json.loads(group.paths.record.read_text())
    group.paths.record.write_text(json.dumps(record | {"data_dir": str(group.paths.root / "elsewhere")}))
    done = mlebench("grade", str(group.paths.root), code=1)
    assert "not_prepared" in done.stderr
    assert [report["score"] for report in reports_of(group)] == [report["score"] for report in before]


def test_a_run_in_progress_elsewhere_is_left_alone(group: Group, mlebench: Mlebench) -> None:
    before = reports_of(group)
    lease = leases.acquire(next(iter(group.runs())).paths.leases)
    assert lease is not None
    done = mlebench("grade", str(group.paths.root), code=1)
    assert "is being done again" in done.stderr
    assert "Traceback" not in done.stderr
    assert reports_of(group) == before


def test_snapshots_of_a_run_are_graded_on_request(run: Runner, mlebench: Mlebench) -> None:
    group = run(SUBMIT)
    (one,) = group.runs()
    (kept,) = one.paths.snapshots.iterdir()
    (one.paths.snapshots / "0000009999.0.csv").write_text("wrong")
    before = reports_of(group)
    done = mlebench("grade", str(group.paths.root), "--snapshots")
    assert json.loads(done.stdout) == {"runs": 1, "snapshots": 2}
    lines = [line.split() for line in done.stderr.splitlines() if line.startswith(one.record.competition)]
    assert [cells[2:4] for cells in lines] == [[f"{float(kept.stem):g}", "graded"], ["9999", "invalid"]]
    points = read_snapshot_scores(one)
    assert points is not None
    assert [getattr(points[0], name) for name in ("score", "submission_sha256")] == [
        before[0][name] for name in ("score", "submission_sha256")
    ]
    assert reports_of(group) == before
    for arguments in (["--snapshots"], ["x", "--snapshots", "--interval"]):
        assert "--snapshots needs a run group" in mlebench("grade", *arguments, code=2).stderr


def test_a_group_and_a_file_cannot_be_combined(mlebench: Mlebench, tmp_path: Path) -> None:
    for arguments in (["x", "--submission", "y"], ["x", "--output-dir", "y"], [], ["--submission", "y"]):
        assert "run group" in mlebench("grade", *arguments, code=2).stderr
    assert "no run group" in mlebench("grade", "x", "--runs-dir", str(tmp_path), code=1).stderr
