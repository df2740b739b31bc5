"""A sandbox has its share of the CPUs, and libraries that look for it in /sys find it there, and nothing else."""

import importlib.util
import os
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from support.sandboxes import SMALL, make_task, require, run_task
from support.traps import run_as

from mlebench.sandbox import cpus
from mlebench.sandbox.base import Bind, interpreter
from mlebench.sandbox.cpus import CpuChoice, as_list, as_mask, write_sys

USERS = [None, 65534] if os.geteuid() == 0 else [None]  # only root can become another user
HERE = len(os.sched_getaffinity(0))


@pytest.mark.parametrize("share", [1, None])
def test_joblib_counts_physical_cores_and_prints_nothing_else(tmp_path: Path, share: float | None) -> None:
    """Without /sys, it prints a traceback into the output of every program that boosts."""
    require("bubblewrap")
    spec = importlib.util.find_spec("joblib")
    if spec is None or spec.origin is None:
        pytest.skip("joblib is not installed")
    libraries = Path(spec.origin).parents[1]
    program = "import os, joblib; print(os.cpu_count(), len(os.sched_getaffinity(0)), joblib.cpu_count(), "
    program += "joblib.cpu_count(only_physical_cores=True))"
    env = {"PATH": "/usr/bin:/bin", "HOME": "/home", "PYTHONPATH": str(libraries)}
    task = make_task(tmp_path, f"{interpreter()} -W error -c {shlex.quote(program)}", replace(SMALL, cpus=share))
    task = replace(task, env=env, binds=(Bind(libraries, str(libraries)),))
    outcome, log = run_task("bubblewrap", task)
    assert outcome.ended == "finished", log
    count, *counts = map(int, log.split())
    physical = len({cpus.CpuLocation.of(number)[:2] for number in os.sched_getaffinity(0)})
    assert [count, *counts] == [1] * 4 if share else [HERE, HERE, HERE, physical]


@pytest.mark.parametrize("user", USERS)
def test_sys_shows_the_topology_of_the_share_and_nothing_else(tmp_path: Path, user: int | None) -> None:
    require("bubblewrap")
    program = "lscpu --parse=cpu,core | grep -vc '^#'; cat /sys/devices/system/cpu/online; "
    program += "find /sys -type f | sort; echo 0-9 > /sys/devices/system/cpu/online"
    outcome, log = run_as(user, tmp_path, f"({program}) 2>&1; true")
    assert outcome == "finished", log
    count, online, *files, refusal = log.splitlines()
    assert (count, online.isdigit()) == ("1", True), log  # one CPU
    assert "Read-only file system" in refusal
    topology = f"/sys/devices/system/cpu/cpu{online}/topology/"
    expected = {f"/sys/devices/system/cpu/{name}" for name in ("online", "possible", "present")}
    expected |= {f"/sys/fs/cgroup/{name}.max" for name in ("cpu", "memory")}
    others = {name for name in files if not name.startswith((topology, "/sys/devices/system/node/"))}
    assert others == expected
    assert {f"{topology}core_id", f"{topology}thread_siblings_list", "/sys/devices/system/node/online"} <= set(files)


def test_sandboxes_get_different_cpus_as_long_as_there_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(90_000, 90_005)))  # nobody else has these
    first, second, third = (CpuChoice.choose(2, enforced=True, exclusive=True) for _ in range(3))
    assert {*first.numbers} & {*second.numbers} == set()
    assert len({*first.numbers, *second.numbers, *third.numbers}) == 5, "the third has to share one"
    assert [len(chosen.numbers) for chosen in (first, second, third)] == [2, 2, 2]
    helper = CpuChoice.choose(2, enforced=True, exclusive=False)
    assert (len(helper.numbers), helper.holders) == (5, [])
    for holder in second.holders:
        holder.close()
    again = CpuChoice.choose(2, enforced=True, exclusive=True)
    assert again.numbers == second.numbers, "they are free again"
    for holder in (*first.holders, *third.holders, *again.holders):
        holder.close()


@pytest.mark.parametrize(
    ("share", "enforced", "count"), [(1.5, True, 2), (1.5, False, 1), (0.2, False, 1), (9, True, 4), (None, False, 4)]
)
def test_a_part_of_a_cpu_is_given_only_if_something_limits_it(
    monkeypatch: pytest.MonkeyPatch, share: float | None, enforced: bool, count: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(91_000, 91_004)))
    chosen = CpuChoice.choose(share, enforced=enforced, exclusive=True)
    assert len(chosen.numbers) == count
    for holder in chosen.holders:
        holder.close()


def test_siblings_are_those_of_the_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two packages with two cores of two threads each; the second thread of the first core is another run's."""
    cores = {0: (0, 0), 1: (0, 1), 2: (1, 0), 3: (1, 1), 5: (0, 1), 40: (1, 0)}
    monkeypatch.setattr(cpus.CpuLocation, "of", lambda number: cpus.CpuLocation(*cores[number], cores[number][0]))
    write_sys(tmp_path, list(cores), 2.5, 1000)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    files = {str(path.relative_to(tmp_path)): path.read_text().strip() for path in written}
    assert files["devices/system/cpu/online"] == "0-3,5,40"
    topology = "devices/system/cpu/cpu1/topology"
    assert files[f"{topology}/thread_siblings_list"] == files[f"{topology}/core_cpus_list"] == "1,5"
    assert (files[f"{topology}/core_siblings_list"], files[f"{topology}/package_cpus"]) == ("0-1,5", "00000023")
    assert files["devices/system/node/node1/cpumap"] == "00000100,0000000c"
    assert (files["fs/cgroup/cpu.max"], files["fs/cgroup/memory.max"]) == ("250000 100000", "1000")


def test_sets_of_cpus_look_like_the_kernels() -> None:
    numbers = os.sched_getaffinity(0)
    status = dict(line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    assert as_list(numbers) == status["Cpus_allowed_list"]
    assert int(as_mask(numbers).replace(",", ""), 16) == int(status["Cpus_allowed"].replace(",", ""), 16)
