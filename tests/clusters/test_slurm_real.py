"""Forty runs on a real Slurm of three nodes, while everything that can be killed is killed."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.live_clusters import NOBODY, WHOLE, check_promises, clusters, require, states
from support.run_fixtures import SUBMIT
from support.sandboxes import breakable_bwrap, processes
from support.traps import python_for_all
from support.waiting import wait_until

from mlebench.records.run_groups import Group
from mlebench.registry import Competition
from mlebench.run.slurm import Slurm
from mlebench.sandbox.resource_usage import descendants

pytestmark = pytest.mark.timeout(1800)

RUNS, WORKERS = (40, 8) if WHOLE else (10, 4)
# The first runs are long enough to be interrupted before their end, even if the machine stalls for some seconds.
PROGRAM = f"echo begun; {SUBMIT}; [ $SEED -ge {WORKERS} ] || sleep 10; sleep 2"


@pytest.fixture(scope="module")
def settings() -> Iterator[Path]:
    """The folder of our own Slurm."""
    require("slurmctld", "slurmd", "munged")
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    try:
        clusters("start", folder)
        yield folder
    finally:
        clusters("stop", folder)
        time.sleep(1)
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class User:
    """A user who submits: root, or an ordinary user with their own copies."""

    folder: Path
    data: Path
    uid: int

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        env = {**os.environ, "MLEBENCH_DATA_DIR": str(self.data), "HOME": str(self.folder)}
        env |= {"XDG_CONFIG_HOME": str(self.folder), "XDG_CACHE_HOME": str(self.folder)}
        # Slurm takes minutes to see that a job is dead, and so do we, unless we are in a hurry.
        program = "from mlebench.run import executors; executors.DEAD_AFTER = 20; from mlebench.cli import main; main()"
        python = python_for_all() if self.uid else sys.executable
        if python != sys.executable:
            env |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [python, "-P", "-c", program, *words]
        who, groups = (self.uid, []) if self.uid else (None, None)
        with (self.folder / "said").open("ab") as said:
            return subprocess.Popen(
                command,
                env=env,
                cwd=self.folder,
                stdout=said,
                stderr=said,
                user=who,
                group=who,
                extra_groups=groups,
            )

    def run(self, *words: str, code: int = 0) -> None:
        assert self.start(*words).wait(600) == code, self.said()

    def plan(self, seeds: int, program: str, *more: str) -> "tuple[subprocess.Popen[bytes], Group]":
        named = ["--agent-command", program, "-c", "spaceship-titanic", "--runs-dir", str(self.folder / "runs")]
        limits = ["--cpus", "1", "--memory", "500m", "--workers", str(WORKERS), "--seeds", str(seeds)]
        before = set(self._groups())
        runner = self.start("run", "--executor", "slurm", *named, *limits, *more)
        (path,) = wait_until(lambda: set(self._groups()) - before, "the group was planned", details=self.said)
        return runner, Group.read(path.parent)

    def said(self) -> str:
        return (self.folder / "said").read_text()[-3000:]

    def _groups(self) -> list[Path]:
        return list(self.folder.glob("runs/*/group.json"))


@pytest.fixture(params=["root", "an ordinary user"])
def user(
    request: pytest.FixtureRequest, settings: Path, titanic: Competition, monkeypatch: pytest.MonkeyPatch
) -> Iterator[User]:
    monkeypatch.setenv("SLURM_CONF", str(settings / "slurm.conf"))
    folder = Path(tempfile.mkdtemp(prefix="user-"))
    uid = 0 if request.param == "root" else NOBODY
    shutil.copytree(titanic.paths.data_dir, folder / "data")
    subprocess.run(["chown", "-R", f"{uid}:{uid}", str(folder)], check=True)
    folder.chmod(0o755)
    yield User(folder, folder / "data", uid)
    subprocess.run(["scancel", f"--user={uid}"], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def squeue(form: str, *more: str) -> list[str]:
    done = subprocess.run(["squeue", "-h", "-r", "-o", form, *more], capture_output=True, text=True, check=False)
    return done.stdout.split()


def running() -> list[str]:
    return squeue("%i", "--states=RUNNING")


def execs(group: Group) -> list[int]:
    return processes(f"\0exec\0{group.paths.root}")


def test_everything_is_killed_and_nothing_is_lost(user: User, settings: Path) -> None:
    runner, group = user.plan(RUNS, PROGRAM, "--time-limit", "60")
    wait_until(lambda: states(group).count("running") >= 2, "two runs were running", details=user.said)

    interrupted = next(run.paths.root for run in group.runs() if run.record.state == "running")
    assert Slurm(group, 1, {}).cancel([interrupted]) == 1
    runner.kill()  # the submitting process is gone; Slurm continues
    runner.wait()

    wait_until(lambda: states(group).count("running") >= 2, "two runs were running", details=user.said)
    # Only a job that is not part of an array, or a single task, can be requeued while it runs.
    subprocess.run(["scontrol", "requeue", running()[0]], check=True)
    wait_until(lambda: states(group).count("running") >= 2, "two runs were running", details=user.said)
    victim = _kill_a_stepd(group)
    wait_until(lambda: victim not in execs(group), "the run of the killed job had ended, too", 60)

    os.kill(int((settings / "slurmctld.pid").read_text()), signal.SIGTERM)
    wait_until(lambda: not _answers(), "the controller was down")
    user.run("run", "--resume", str(group.paths.root), code=1)  # one line, and nothing is broken
    assert "Error: squeue failed" in (user.folder / "said").read_text()
    clusters("controller", settings)
    wait_until(_answers, "the controller was up again")

    user.run("run", "--resume", str(group.paths.root))
    check_promises(group, RUNS)
    attempts = next(run.record.attempts for run in group.runs() if run.paths.root == interrupted)
    assert attempts[0].ended == "cancelled"
    assert _nothing_in_the_queue(group)


def _kill_a_stepd(group: Group) -> int:
    """Kill one that has a run; returns which process that was."""

    def pairs() -> list[tuple[int, int]]:
        victims = set(execs(group))
        return [(stepd, victim) for stepd in processes("slurmstepd") for victim in victims & descendants(stepd)]

    (stepd, victim), *_ = wait_until(pairs, "a slurmstepd had a run")
    os.kill(stepd, signal.SIGKILL)
    return victim


def _answers() -> bool:
    return subprocess.run(["scontrol", "ping"], capture_output=True, text=True, check=False).stdout.count("UP") == 1


def _nothing_in_the_queue(group: Group) -> bool:
    wait_until(lambda: not Slurm(group, 1, {}).jobs(), "the queue was empty")
    return True


def test_the_time_limit_is_ours(user: User) -> None:
    runner, group = user.plan(2, f"{SUBMIT}; sleep 100", "--time-limit", "10")
    assert runner.wait(200) == 0
    check_promises(group, 2, ended="timeout")


def test_cancel_ends_running_runs_and_keeps_what_they_had(user: User) -> None:
    runner, group = user.plan(3, f"{SUBMIT}; [ -e /nowhere ] || sleep 1000", "--time-limit", "600")
    wait_until(lambda: states(group).count("running") >= 2, "two runs were running", details=user.said)
    submitted = ".work/*/home/submission/submission.csv"
    wait_until(lambda: len(list(group.paths.root.glob(submitted))) >= 2, "two had submitted something")
    runner.send_signal(signal.SIGINT)
    assert runner.wait(120) == 130
    assert states(group).count("running") >= 2, "to detach is not to cancel"
    user.run("runs", "cancel", str(group.paths.root))
    wait_until(lambda: states(group) == ["planned"] * 3, "all runs were planned again", details=user.said)
    kept = [path for run in group.runs() for path in run.paths.root.glob("attempts/1/submission/submission.csv")]
    assert len(kept) >= 2
    attached = user.start("run", "--resume", str(group.paths.root))
    wait_until(lambda: states(group).count("running") >= 2, "two runs were running again", details=user.said)
    user.run("runs", "cancel", str(group.paths.root))
    submissions = len(list(group.paths.slurm.glob("*.sh")))
    assert attached.wait(120) == 130, user.said()
    wait_until(lambda: states(group) == ["planned"] * 3, "all runs were planned again", details=user.said)
    wait_until(lambda: not execs(group), "no `run exec` was left", 60)
    assert _nothing_in_the_queue(group)
    assert len(list(group.paths.slurm.glob("*.sh"))) == submissions, "they came back"


@pytest.mark.skipif(not WHOLE, reason="takes two minutes: only with MLEBENCH_CLUSTERS=whole")
def test_slurms_own_time_limit_leaves_the_run_to_be_resumed(user: User) -> None:
    runner, group = user.plan(1, f"{SUBMIT}; sleep 20000", "--time-limit", "300", "--slurm-option", "time=1")
    wait_until(lambda: states(group) == ["running"], "the run was running", details=user.said)
    runner.kill()
    runner.wait()
    wait_until(lambda: states(group) == ["planned"], "Slurm had ended the run", 240)
    (run,) = group.runs()
    assert [attempt.ended for attempt in run.record.attempts] == ["cancelled"]
    assert str(run.record.attempts[0].detail).startswith("Slurm's time limit ended it")
    assert "Slurm's time limit (time=1) is below that of the runs (300 s)" in user.said()
    assert (run.paths.attempt(1) / "submission" / "submission.csv").is_file()
    wait_until(lambda: not execs(group), "no `run exec` was left", 60)


def test_a_broken_node_does_not_eat_the_work(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    if user.uid and not WHOLE:
        pytest.skip("as an ordinary user only with MLEBENCH_CLUSTERS=whole")
    with breakable_bwrap("n1") as programs:
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        runner, group = user.plan(12 if WHOLE else 5, f"{SUBMIT}; sleep 1", "--time-limit", "60")
        assert runner.wait(300) == 0, user.said()
    attempts = [attempt for run in group.runs() for attempt in run.record.attempts]
    assert {run.record.ended for run in group.runs()} == {"finished"}
    assert {attempt.node for attempt in attempts if attempt.ended != "finished"} == {"n1"}
    assert {run.record.starts for run in group.runs()} == {1}
    assert "n1 takes no more runs of this group" in user.said()


def test_runs_that_no_node_can_take_are_refused(user: User) -> None:
    named = ["--agent-command", SUBMIT, "-c", "spaceship-titanic", "--runs-dir", str(user.folder / "runs")]
    user.run("run", "--executor", "slurm", *named, "--cpus", "36", "--memory", "1g", code=1)
    assert "needs 36 CPUs" in user.said()
    user.run("run", "--executor", "slurm", *named, "--memory", "1g", "--slurm-option", "partition=none", code=1)
    assert "invalid partition specified: none" in user.said()
    assert not squeue("%i")
    assert not (user.folder / "runs").exists()


def test_doctor_asks_every_node(user: User) -> None:
    user.run("doctor", "--executor", "slurm", "--runs-dir", str(user.folder))
    said = (user.folder / "said").read_text()
    for node in ("n1", "n2", "n3"):
        for what in ("sandboxes", "cgroups", "GPUs", "clock", "disk"):
            assert f"{node}: {what}" in said
    assert not list(user.folder.glob("mlebench-*"))
