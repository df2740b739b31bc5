"""GPUs are simulated by a program that answers as nvidia-smi does; the runners that compete for them are real."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from support.run_fixtures import SUBMIT, Mlebench, Start
from support.sandboxes import processes, require, wait_until_gone
from support.waiting import wait_until

from mlebench.core.errors import PrerequisiteError
from mlebench.records.run_groups import Group
from mlebench.registry import Competition
from mlebench.run import gpus
from mlebench.run.gpus import GpuLease, GpuPool
from mlebench.run.hardware import gpus as gpus_here
from mlebench.sandbox.resource_usage import descendants


class Machine:
    """Some GPUs that no other test has: their UUIDs are new. The second one is divided into two parts."""

    def __init__(self, folder: Path):
        self.mark = uuid4().hex[:12]
        self.gpus = [f"GPU-{self.mark}-{number}" for number in range(2)]
        self.parts = [f"MIG-{self.mark}-{number}" for number in range(2)]
        lines = [f"GPU 0: Simulated (UUID: {self.gpus[0]})", f"GPU 1: Simulated 2 (UUID: {self.gpus[1]})"]
        lines += [f"  MIG 1g.5gb     Device  {number}: (UUID: {part})" for number, part in enumerate(self.parts)]
        text = "\n".join(lines)
        program = folder / "bin" / "nvidia-smi"
        program.parent.mkdir()
        query = "0, Simulated, 100\n1, Simulated 2, 100"
        program.write_text(f'#!/bin/sh\nif [ "$1" = -L ]; then echo "{text}"; else echo "{query}"; fi\n')
        program.chmod(0o755)
        self.env = {"PATH": f"{program.parent}:{os.environ['PATH']}"}

    def held(self) -> list[str]:
        """The UUIDs that the kernel says are held."""
        names = [line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines() if self.mark in line]
        return sorted({name.removeprefix("@mlebench-gpu-") for name in names if not name.endswith("-turn")})


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    there = Machine(tmp_path)
    monkeypatch.setenv("PATH", there.env["PATH"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpus.devices.cache_clear()
    yield there
    gpus.devices.cache_clear()
    assert there.held() == []


def test_a_broken_driver_is_not_taken_for_a_machine_without_gpus(
    machine: Machine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fault = "NVIDIA-SMI has failed because it could not communicate with the driver."
    (tmp_path / "bin" / "nvidia-smi").write_text(f'#!/bin/sh\necho "{fault}"\nexit 9\n')
    assert gpus.choose(None, 1) == GpuPool()
    assert [fault in message for message in caplog.messages] == [True]


@pytest.fixture
def runner(start: Start, titanic: Competition, tmp_path: Path) -> Callable[..., "subprocess.Popen[str]"]:
    """Start a runner with its own runs directory."""

    def call(name: str, program: str, *options: str, sandbox: str = "process", **more: Any) -> "subprocess.Popen[str]":
        named = ["--agent-command", program, "-c", titanic.id, "--sandbox", sandbox, "--runs-dir", str(tmp_path / name)]
        return start("run", *named, "--time-limit", "200", *options, **more)

    return call


def _group(folder: Path) -> Group:
    (found,) = folder.glob("*_run-group_*/group.json")
    return Group.read(found.parent)


def _send(number: signal.Signals, pids: Iterable[int]) -> None:
    for pid in pids:
        os.kill(pid, number)


def test_no_two_runs_of_two_runners_have_one_gpu(machine: Machine, runner: Any, tmp_path: Path) -> None:
    # The agents find out by themselves: each locks a file for its GPU.
    mine = f"{tmp_path}/used-$CUDA_VISIBLE_DEVICES"
    program = f"(flock -n 9 && sleep 0.4 || echo clash >{tmp_path}/clash) 9>{mine}; {SUBMIT}"
    both = [runner(name, program, "--seeds", "3", "--workers", "2") for name in ("one", "other")]
    assert [one.wait(200) for one in both] == [0, 0]
    assert not (tmp_path / "clash").exists()
    assert sorted(path.name for path in tmp_path.glob("used-*")) == ["used-0", "used-1"]
    runs = [run for name in ("one", "other") for run in _group(tmp_path / name).runs()]
    assert [run.record.ended for run in runs] == ["finished"] * 6
    assert {tuple(run.record.conditions.gpus) for run in runs} == {("0",), ("1",)}
    assert all(run.record.gpu_hours for run in runs)
    assert all(len(run.record.attempts) == 1 for run in runs), "waiting is no failure"


@pytest.mark.parametrize(
    ("sandbox", "victims"),
    [("process", ["runner"]), ("process", ["runner", "exec"]), ("bubblewrap", ["runner", "exec", "supervisor"])],
)
def test_a_killed_runner_frees_its_gpu(
    machine: Machine, runner: Any, tmp_path: Path, sandbox: str, victims: list[str]
) -> None:
    require(sandbox)
    first = runner("one", f"{SUBMIT}; sleep 1000", "--gpus", "0", sandbox=sandbox)
    wait_until(lambda: machine.held() == [machine.gpus[0]], "the first runner holds its GPU")
    (owner,) = wait_until(lambda: processes(f"\0exec\0{tmp_path / 'one'}"), "`run exec` has started")
    supervisor = "mlebench.sandbox.supervisor"
    wait_until(lambda: set(processes(supervisor)) & descendants(owner), "the supervisor has started")
    pids = {"runner": [first.pid], "exec": [owner], "supervisor": set(processes(supervisor)) & descendants(owner)}
    with (tmp_path / "said").open("w") as said:
        second = runner("other", SUBMIT, "--gpus", "0", sandbox=sandbox, stderr=said)
    wait_until(lambda: "Waiting" in (tmp_path / "said").read_text(), "the second runner says that it waits")
    assert [run.record.state for run in _group(tmp_path / "other").runs()] == ["planned"]
    _send(signal.SIGSTOP, pids["supervisor"])
    _send(signal.SIGKILL, [pid for victim in victims for pid in pids[victim]])
    if "supervisor" not in victims:
        wait_until_gone(f"\0{tmp_path / 'one'}\0")  # the runner
        assert machine.held() == [machine.gpus[0]], "the agent is still there"
        _send(signal.SIGCONT, pids["supervisor"])
    assert second.wait(200) == 0
    (run,) = _group(tmp_path / "other").runs()
    assert run.record.ended == "finished"
    words = "Waiting for 1 of the GPUs 0: other runs on this machine hold them"
    assert (tmp_path / "said").read_text().count(words) == 1
    wait_until_gone(str(tmp_path / "one"))


def test_what_holds_a_gpu_is_not_in_the_sandbox(machine: Machine, runner: Any, tmp_path: Path) -> None:
    assert runner("one", "ls -l /proc/self/fd; env; sleep 0.2", "--gpus", "0,1").wait(200) == 0
    (run,) = _group(tmp_path / "one").runs()
    said = run.paths.log.read_text()
    assert "CUDA_VISIBLE_DEVICES=0,1" in said
    assert "socket:" not in said
    assert gpus.HOLDERS_VARIABLE not in said


def test_a_scheduler_has_the_last_word_and_its_gpus_are_held(
    machine: Machine, runner: Any, mlebench: Mlebench, tmp_path: Path
) -> None:
    ours = gpus.take(GpuPool(("0",), 1))
    assert ours is not None
    waiting = runner("one", f"{SUBMIT}; grep mlebench-gpu /proc/net/unix", "--gpus", "0")
    wait_until(lambda: list((tmp_path / "one").glob("*/group.json")), "the group is planned")
    waiting.kill()
    waiting.wait()
    (run,) = _group(tmp_path / "one").runs()
    said = mlebench("run", "exec", str(run.paths.root), "--gpus", f"0,{machine.gpus[1]},7").stderr
    ours.close()
    assert "GPU 0, which this run was assigned, is held by another run on this machine" in said
    assert said.count("another run") == 1
    (run,) = _group(tmp_path / "one").runs()
    assert (run.record.ended, run.record.conditions.gpus) == ("finished", ["0", "1", "7"])
    assert all(f"mlebench-gpu-{uuid}" in run.paths.log.read_text() for uuid in [machine.gpus[1], *machine.parts])


def test_names_that_cuda_accepts(machine: Machine) -> None:
    assert gpus.choose("0,1", 2) == GpuPool(("0", "1"), 1)
    assert gpus.choose("all", 1) == GpuPool(("0", "1"), 2)
    assert gpus.choose(machine.gpus[1], 1) == GpuPool(("1",), 1)
    assert gpus.choose(",".join(machine.parts), 2) == GpuPool(tuple(machine.parts), 1)
    for text in ("2", f"GPU-{machine.mark}", "GPU-", ""):
        with pytest.raises(PrerequisiteError, match="there is no GPU"):
            gpus.choose(text, 1)
    for text in ("0,0", f"0,{machine.gpus[0]}", f"1,{machine.parts[0]}"):
        with pytest.raises(PrerequisiteError, match="twice"):
            gpus.choose(text, 1)


@pytest.mark.parametrize(
    ("told", "pool"),
    [
        (None, ("0", "1")),
        ("1", ("1",)),
        ("1,0", ("1", "0")),
        ("1,7,0", ("1",)),
        ("", ()),
        ("-1", ()),
        ("{gpu}", ("1",)),
        ("{part}", ("{part}",)),
    ],
)
def test_only_visible_gpus_are_used_unless_others_are_named(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, told: str | None, pool: tuple[str, ...]
) -> None:
    names = {"gpu": machine.gpus[1], "part": machine.parts[0]}
    if told is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", told.format(**names))
    pool = tuple(name.format(**names) for name in pool)
    assert gpus.choose(None, 1) == GpuPool(pool, min(1, len(pool)))
    if pool:
        assert gpus.choose("all", 1) == GpuPool(pool, len(pool))
    else:
        with pytest.raises(PrerequisiteError, match="CUDA_VISIBLE_DEVICES hides those of this machine"):
            gpus.choose("all", 1)
    assert gpus.choose("0", 1) == GpuPool(("0",), 1)


def test_a_gpu_and_its_parts_exclude_each_other(machine: Machine) -> None:
    part, other = machine.parts

    def take(*names: str, share: int = 1) -> GpuLease | None:
        return gpus.take(GpuPool(names, share))

    first = take(part)
    assert first is not None
    assert (first.names, machine.held()) == ((part,), [part])
    assert take("1") is None
    assert take(part) is None
    assert take("0", "1", share=2) is None
    assert machine.held() == [part], "whoever waits holds nothing"
    second = take(part, other)
    assert second is not None
    assert second.names == (other,)
    first.close()
    second.close()
    whole = take("1")
    assert whole is not None
    assert take(part, other) is None
    whole.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_users_see_what_others_hold(machine: Machine) -> None:
    one = GpuPool(("0",), 1)
    roots = gpus.take(one)
    assert roots is not None
    os.seteuid(65534)
    try:
        assert gpus.take(one) is None
        roots.close()
        theirs = gpus.take(one)
    finally:
        os.seteuid(0)
    assert theirs is not None
    assert gpus.take(one) is None
    theirs.close()


def test_resuming_where_gpus_are_missing(machine: Machine) -> None:
    assert gpus.choose_again(None, 1, 2) == GpuPool(("0", "1"), 2)
    assert gpus.choose_again(None, 1, 0) == GpuPool()
    assert gpus.choose_again("none", 1, 4) == GpuPool()
    with pytest.raises(PrerequisiteError, match="each run of this group gets 4 GPUs, and this machine has 2"):
        gpus.choose_again(None, 1, 4)


def test_all_gpus_of_a_machine_without_any_are_refused(
    mlebench: Mlebench, titanic: Competition, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"gpus": -1}')
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\n")  # it lists none
    (tmp_path / "nvidia-smi").chmod(0o755)
    named = ["run", "--agent", "dummy", "-c", titanic.id, "--sandbox", "process", "--runs-dir", str(tmp_path / "runs")]
    for options in (["--gpus", "all"], ["--container-config", str(config)]):
        said = mlebench(*named, *options, code=1, env=env).stderr
        assert "all GPUs are asked for, but this machine has none: leave out --gpus, or `gpus` in" in said
    assert "these runs get no GPU" in mlebench(*named, "--runs-per-gpu", "2", code=1, env=env).stderr
    assert not (tmp_path / "runs").exists()
    mlebench(*named, env=env)
    assert _group(tmp_path / "runs").record.gpus_per_run == 0


def test_refusals_name_what_there_is_and_what_to_do(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match=f"there is no GPU '3': this machine has GPUs 0, 1, {machine.parts[0]}"):
        gpus.choose("3", 1)
    with pytest.raises(PrerequisiteError, match=r"3 workers cannot share 1 GPU: .*each GPU with --runs-per-gpu 3$"):
        gpus.refuse_crowd(gpus.choose("0", 3), 3)
    with pytest.raises(PrerequisiteError, match="5 workers cannot share 2 GPUs at 2 runs on each: use fewer workers"):
        gpus.refuse_crowd(gpus.choose("0,1", 5, 2), 5)
    gpus.refuse_crowd(gpus.choose("0,1", 4, 2), 4)
    (tmp_path / "bin" / "nvidia-smi").write_text(f'#!/bin/sh\necho "GPU 0: One (UUID: {machine.gpus[0]})"\n')
    gpus.devices.cache_clear()
    with pytest.raises(PrerequisiteError, match=r"there is no GPU '3': this machine has GPU 0$"):
        gpus.choose("3", 1)


def test_slots_of_a_gpu_are_spread_and_never_shared_with_runs_that_promise_otherwise(machine: Machine) -> None:
    two = GpuPool(("0", "1"), 1, 2)
    held = [gpus.take(two) for _ in range(5)]
    assert [one and one.names for one in held] == [("0",), ("1",), ("0",), ("1",), None]
    assert gpus.take(GpuPool(("0",), 1)) is None
    assert gpus.take(GpuPool((machine.parts[0],), 1)) is None
    last = held.pop(2)
    assert last is not None
    last.close()
    assert gpus.take(GpuPool(("0",), 1)) is None, "another run is still there"
    assert gpus.take(GpuPool(("0",), 1, 4)) is None, "and expects at most one neighbour"
    again = gpus.take(two)
    assert again is not None
    assert again.names == ("0",)
    for one in (again, *held):
        if one is not None:
            one.close()
    whole = gpus.take(GpuPool(("0",), 1))
    assert whole is not None
    assert gpus.take(GpuPool(("0",), 1, 2)) is None
    whole.close()


def test_two_runners_put_two_runs_on_one_gpu_and_no_more(
    machine: Machine, runner: Any, mlebench: Mlebench, tmp_path: Path
) -> None:
    # Each agent takes one of two locks; a third on the same GPU would find neither.
    locks = [f"(flock -n 9 && sleep 0.4) 9>{tmp_path}/used-{number}" for number in (1, 2)]
    program = f"{' || '.join(locks)} || echo clash >{tmp_path}/clash; {SUBMIT}"
    options = ("--gpus", "0", "--runs-per-gpu", "2", "--seeds", "3", "--workers", "2")
    both = [runner(name, program, *options) for name in ("one", "other")]
    assert [one.wait(200) for one in both] == [0, 0]
    assert not (tmp_path / "clash").exists()
    groups = [_group(tmp_path / name) for name in ("one", "other")]
    assert [group.record.runs_per_gpu for group in groups] == [2, 2]
    resumed = mlebench("run", "--resume", str(groups[0].paths.root)).stderr
    assert "Up to 2 runs share a GPU, and each of them can take all of its memory." in resumed
    runs = [run.record for group in groups for run in group.runs()]
    assert {(run.ended, *run.conditions.gpus, run.conditions.runs_per_gpu) for run in runs} == {("finished", "0", 2)}
    told = mlebench("report", str(groups[0].paths.root))
    assert "1 GPU, 2 runs per GPU" in told.stderr
    again = mlebench("run", "--resume", str(groups[0].paths.root), "--runs-per-gpu", "3", code=2)
    assert "leave out --runs-per-gpu with --resume" in again.stderr
    refused = mlebench("run", "--resume", str(groups[0].paths.root), "--executor", "slurm", code=1)
    assert "--runs-per-gpu 2: Slurm and Ray give each GPU to one run" in refused.stderr


def test_what_nvidia_smi_says_beside_its_list_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (
        "Unable to determine the device handle for GPU0: GPU is lost",
        "0, A GPU, of two parts, 81559",
        "1, Other, [N/A]",
    )
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    listed = gpus_here.__wrapped__()
    assert [(gpu.index, gpu.name, gpu.memory_mb) for gpu in listed] == [
        ("0", "A GPU, of two parts", 81559),
        ("1", "Other", None),
    ]
