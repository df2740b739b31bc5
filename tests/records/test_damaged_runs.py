"""A run whose record is damaged: the other runs of its group go on, and nothing is taken for ended that is not."""

import json
import os
from pathlib import Path

import msgspec
import pytest
from support.forged_bundles import write_group
from support.groups import plan_group
from support.run_fixtures import SUBMIT, Mlebench

from mlebench.bundles.make import make_bundle
from mlebench.bundles.reader import read_bundle
from mlebench.core import leases
from mlebench.core.errors import PrerequisiteError
from mlebench.records.run import RunRecord
from mlebench.records.run_groups import Group
from mlebench.records.snapshots import SnapshotScore
from mlebench.records.usage import ModelUsage
from mlebench.registry import Competition
from mlebench.run.group_operations import finish, finished_report
from mlebench.run.regrade import require_ended


@pytest.fixture
def group(titanic: Competition, tmp_path: Path) -> Group:
    """A group of three runs, all of which have ended."""
    sample = titanic.sample_submission.read_bytes()
    return write_group(tmp_path / "runs", titanic, [sample] * 3)


def damage(group: Group, number: int = 1, content: str | None = "") -> Path:
    record = list(group.runs())[number].paths.record
    record.unlink()
    if content is not None:
        record.write_text(content)
    return record


@pytest.mark.parametrize("content", ["", None, '{"schema": 2}', "folder", "pipe"])
def test_the_other_runs_are_done(titanic: Competition, mlebench: Mlebench, tmp_path: Path, content: str | None) -> None:
    group = plan_group(titanic, tmp_path / "runs", agent_command=SUBMIT, seeds=3, time_limit=60)
    folder = group.paths.root
    record = damage(group, 1, None if content in ("folder", "pipe") else content)
    if content == "folder":
        record.mkdir()
    elif content == "pipe":
        os.mkfifo(record)
    said = mlebench("run", "--resume", str(folder), code=1).stderr
    assert "is damaged, and counts as missing until its record is restored: " in said
    assert "have not ended" not in said
    runs = list(Group.read(folder).runs())
    assert [(run.state, run.record.seed) for run in runs] == [("ended", 0), ("damaged", 1), ("ended", 2)]
    listed = mlebench("runs", "list", str(folder)).stdout
    assert listed.count("damaged") == 1
    assert listed.count("finished") == 2
    assert "damaged" in mlebench("runs", "show", str(record.parent)).stdout


def test_a_run_that_is_damaged_after_its_group_has_ended_is_a_failure(group: Group, mlebench: Mlebench) -> None:
    finish(group)
    record = damage(group)
    done = mlebench("run", "--resume", str(group.paths.root), code=1)
    assert f"counts as missing until its record is restored: {record} is not JSON" in done.stderr


def test_a_damaged_run_that_somebody_works_on_has_not_ended(group: Group) -> None:
    record = damage(group)
    lease = leases.acquire(record.parent / "leases")
    assert lease
    assert [run.state for run in group.runs()] == ["ended", "running", "ended"]
    with pytest.raises(PrerequisiteError, match=r"1 runs of .* have not ended"):
        require_ended(group)
    lease.release()
    require_ended(group)


def test_a_record_that_is_mended_gets_into_the_report(group: Group) -> None:
    content = list(group.runs())[1].paths.record.read_bytes()
    record = damage(group)
    report = finish(group)
    assert report
    statuses = [row["status"] for row in json.loads(report.read_text())["competition_reports"]]
    assert statuses == ["graded", "infra_error", "graded"]
    again = Group.read(group.paths.root)
    assert finished_report(again, again.runs()) is None
    record.write_bytes(content)
    report = finish(again)
    assert report
    assert [row["status"] for row in json.loads(report.read_text())["competition_reports"]] == ["graded"] * 3


def test_a_bundle_says_which_run_is_damaged(group: Group, tmp_path: Path) -> None:
    damage(group)
    make_bundle(Group.read(group.paths.root), tmp_path / "bundle.tar.gz")
    ends = [
        (run.record.ended, run.record.report is None) for run in read_bundle(tmp_path / "bundle.tar.gz").group.runs()
    ]
    assert ends == [("finished", False), ("infra_error", True), ("finished", False)]


def test_a_stray_folder_is_no_run(group: Group) -> None:
    stray = group.paths.root / "foo_bar"
    stray.mkdir()
    (stray / "run.json").write_text("junk")
    assert len(list(group.runs())) == 3
    assert finish(group)


@pytest.mark.parametrize("option", [("--cpus", "1e7"), ("--time-limit", "20000000000m"), ("--workers", "9" * 20)])
def test_no_group_is_planned_whose_record_could_not_be_read(
    titanic: Competition, mlebench: Mlebench, tmp_path: Path, option: tuple[str, str]
) -> None:
    where = ["--data-dir", str(titanic.paths.data_dir), "--runs-dir", str(tmp_path / "runs")]
    said = mlebench("run", "--agent", "dummy", "-c", titanic.id, *where, *option, code=1).stderr
    assert "Error: this run group: `" in said
    assert "Traceback" not in said
    assert list((tmp_path / "runs").iterdir()) == []


def test_records_hold_any_score_and_what_a_trace_lacks() -> None:
    assert msgspec.convert({"seconds": 1, "score": 1e302}, SnapshotScore).score == 1e302
    usage = msgspec.convert({"calls": 1, "trace": {"cut": 2, "left_out": 3}}, ModelUsage)
    assert msgspec.to_builtins(usage)["trace"] == {"cut": 2, "left_out": 3}
    assert "trace" in ModelUsage.__struct_fields__
    assert RunRecord(run_id="r", competition="c", seed=0, planned_at=None, model=usage).to_dict()["model"]["trace"]
