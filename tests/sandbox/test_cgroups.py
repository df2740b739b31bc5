"""Where groups with limits are made under control groups of version 2. They are imitated: a machine may have none."""

from pathlib import Path

import pytest

from mlebench.sandbox import cgroups
from mlebench.sandbox.cgroups import Cgroup, delegates


def group(folder: Path, *, kind: str | None = "domain", procs: str = "", enabled: str = "") -> Path:
    folder.mkdir()
    if kind:
        (folder / "cgroup.type").write_text(f"{kind}\n")
    (folder / "cgroup.procs").write_text(procs)
    (folder / "cgroup.controllers").write_text("cpu memory pids\n")
    (folder / "cgroup.subtree_control").write_text(enabled)
    return folder


@pytest.mark.parametrize("state", [{"procs": "1\n2\n"}, {"kind": "domain threaded", "enabled": "cpu pids"}])
def test_a_group_with_processes_is_left_as_it_is(tmp_path: Path, state: dict[str, str]) -> None:
    folder = group(tmp_path / "own", **state)
    before = (folder / "cgroup.subtree_control").read_text()
    assert not delegates(folder)
    assert (folder / "cgroup.subtree_control").read_text() == before, "limits on CPUs alone make it one for threads"


def test_an_empty_group_and_the_root_may_have_groups_below(tmp_path: Path) -> None:
    assert delegates(group(tmp_path / "above", enabled="cpu memory pids"))
    assert delegates(group(tmp_path / "root", kind=None, procs="1\n", enabled="cpu memory pids"))


def test_a_limit_that_the_kernel_refuses_is_not_told_as_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As version 1 does with more CPUs than the group above has, or with less than a hundredth of one."""
    (tmp_path / "cpu.cfs_period_us").touch()
    (tmp_path / "cpu.cfs_quota_us").mkdir()  # refuses what is written to it
    (tmp_path / "pids.max").touch()
    monkeypatch.setattr(cgroups, "_places", lambda name: ({"cpu": tmp_path, "pids": tmp_path}, False))
    made = Cgroup.create("x", memory=None, cpus=4, processes=100)
    assert made
    assert made.enforced_by == {"pids": "cgroup v1"}
