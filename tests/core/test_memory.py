"""How much memory there is: of the machine, or of the control group that we are in."""

import os
from pathlib import Path

import pytest
from support.waiting import wait_until

from mlebench.core import memory
from mlebench.registry import Competition
from mlebench.run import validator_proxy
from mlebench.run.hardware import share_of_memory
from mlebench.sandbox.base import Task
from mlebench.validate.isolated_check import CheckLimits

GB = 10**9


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The control groups of a machine with much memory; nothing is limited yet."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    monkeypatch.setattr(memory, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "_physical", lambda: 512 * GB)
    return tmp_path / "cgroup"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_validator_keeps_within_the_control_group(groups: Path) -> None:
    assert CheckLimits().memory == 512 * GB // 3
    _write(groups / "memory.max", "max\n")
    assert CheckLimits().memory == 512 * GB // 3
    _write(groups / "memory.max", f"{6 * GB}\n")
    assert CheckLimits().memory == 2 * GB
    assert share_of_memory(1) == int(5.7 * GB)


@pytest.mark.parametrize(
    ("own", "file"),
    [
        ("0::/system.slice/slurm/job_7/step_0\n", "system.slice/slurm/job_7/memory.max"),
        ("9:cpu,memory:/slurm/job_7\n1:name=systemd:/\n", "memory/slurm/job_7/memory.limit_in_bytes"),
        ("9:memory:/docker/4f\n", "memory/memory.limit_in_bytes"),  # the container's own group is the root it sees
    ],
)
def test_a_job_of_a_cluster_has_what_its_own_group_or_one_around_it_has(groups: Path, own: str, file: str) -> None:
    _write(memory._PROC / "self/cgroup", own)
    _write(groups / file, f"{3 * GB}\n")
    assert memory.total_memory() == 3 * GB


def test_a_validator_in_a_sandbox_is_told_since_it_cannot_see_control_groups(
    groups: Path, titanic: Competition, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(groups / "memory.max", f"{6 * GB}\n")
    monkeypatch.setattr(validator_proxy, "SupervisorClient", lambda task, _: task)
    with validator_proxy.ValidatorProxy("token", titanic, titanic.public_dir) as validator:
        task = validator._start()
    assert isinstance(task, Task)
    assert task.limits.memory == 6 * GB
    assert task.command[-2:] == ("--memory", str(2 * GB))
    assert task.env["OPENBLAS_NUM_THREADS"] == os.environ.get("OPENBLAS_NUM_THREADS", "1")


@pytest.mark.usefixtures("groups")
def test_memory_of_a_process_counts_what_was_swapped_out() -> None:
    _write(memory._PROC / "7/status", "Name:\tx\nVmHWM:\t90 kB\nVmRSS:\t   20 kB\nVmSwap:\t 5 kB\n")
    assert memory.used_memory(7) == 25 * 1024
    assert memory.used_memory(8) == 0


def test_the_peak_of_a_call_is_its_own_even_after_a_higher_one(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    look = memory.used_memory
    monkeypatch.setattr(memory, "used_memory", lambda pid: looks.append(look(pid)) or looks[-1])

    def hold(size: int) -> int:
        held, earlier = bytearray(b"x") * size, len(looks)
        wait_until(lambda: len(looks) > earlier + 1, "the thread has looked")
        return len(held)

    before = look(os.getpid())
    assert before > 1_000_000
    _, high = memory.peak_during(lambda: hold(400_000_000))
    size, low = memory.peak_during(lambda: hold(100_000_000))
    assert size == 100_000_000
    assert before + 300_000_000 < high
    assert before + 50_000_000 < low < high - 100_000_000
