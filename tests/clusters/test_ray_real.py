"""Runs on a real Ray of three nodes, one of which is killed. It uses Ray's venv, which `.ci/clusters` makes."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from pathlib import Path
from typing import IO

import pytest
from support.live_clusters import WHOLE, check_promises, require, states
from support.run_fixtures import SUBMIT
from support.sandboxes import breakable_bwrap, processes
from support.sandboxes import require as require_sandbox
from support.waiting import wait_until

from mlebench.records.run_groups import Group
from mlebench.registry import Competition

pytestmark = pytest.mark.timeout(1800)

RUNS = 24 if WHOLE else 8
# This setting keeps Ray on the loopback; by default it prefers the host's own address.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
# Nodes die on command; the last line of stdin ends everything.
CLUSTER = """
import sys
from ray.cluster_utils import Cluster

here = {"num_cpus": 2, "node_ip_address": "127.0.0.1"}
cluster = Cluster(initialize_head=True, head_node_args={**here, "num_gpus": 0, "include_dashboard": False})
nodes = [cluster.add_node(**here, num_gpus=gpus) for gpus in (2, 0)]
print(cluster.address, cluster.head_node.node_id, flush=True)
for line in sys.stdin:
    if line.strip() == "kill":
        cluster.remove_node(nodes.pop(), allow_graceful=False)
        print("killed", flush=True)
    else:
        break
cluster.shutdown()
"""


@dataclass
class Cluster:
    address: str
    node: str  # the name of the first of three
    programs: Path
    python: Path
    process: "subprocess.Popen[str]"
    data: Path
    folder: Path

    def kill_a_node(self) -> None:
        self.say("kill")
        assert _line(self.process.stdout) == "killed"

    def say(self, word: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        env = {**os.environ, **LOOPBACK, "MLEBENCH_DATA_DIR": str(self.data)}
        with (self.folder / "said").open("ab") as said:
            command = [str(self.python), "-P", "-m", "mlebench", *words]
            return subprocess.Popen(
                command, env=env, cwd=self.folder, stdout=said, stderr=said, stdin=subprocess.DEVNULL
            )

    def plan(
        self, seeds: int, program: str, *more: str, sandbox: str = "process"
    ) -> "tuple[subprocess.Popen[bytes], Group]":
        named = ["--agent-command", program, "-c", "spaceship-titanic", "--runs-dir", str(self.folder / "runs")]
        limits = ["--cpus", "1", "--memory", "100m", "--workers", "4", "--seeds", str(seeds), "--time-limit", "100"]
        before = set(self.folder.glob("runs/*/group.json"))
        address = ["--executor", "ray", "--ray-address", self.address]
        runner = self.start("run", *address, "--sandbox", sandbox, *named, *limits, *more)
        (path,) = wait_until(
            lambda: set(self.folder.glob("runs/*/group.json")) - before, "the group was planned", details=self.said
        )
        return runner, Group.read(path.parent)

    def said(self) -> str:
        return (self.folder / "said").read_text()[-3000:]


def _line(stream: IO[str] | None) -> str:
    assert stream
    return stream.readline().strip()


@pytest.fixture
def cluster(titanic: Competition, tmp_path: Path) -> Iterator[Cluster]:
    require()
    python = Path(__file__).parents[2] / ".venv-ray" / "bin" / "python"
    if not python.exists():
        pytest.skip("there is no venv of Ray: `.ci/clusters install`")
    with breakable_bwrap() as programs:
        process = subprocess.Popen(
            [python, "-c", CLUSTER],
            env={**os.environ, **LOOPBACK, "PATH": f"{programs}:{os.environ['PATH']}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        address, id = _line(process.stdout).split()
        name = f"{socket.gethostname()}-{id[:6]}"
        try:
            yield Cluster(address, name, programs, python, process, titanic.paths.data_dir, tmp_path)
        finally:
            try:
                process.communicate("end\n", timeout=60)
            finally:
                process.kill()


def test_a_node_is_killed_and_so_is_whoever_submitted(cluster: Cluster) -> None:
    runner, group = cluster.plan(RUNS, f"echo begun; {SUBMIT}; sleep 4")
    wait_until(lambda: states(group).count("running") >= 2, "two runs were running", details=cluster.said)
    runner.kill()
    runner.wait()
    assert states(group).count("running") >= 1, "what was submitted goes on"
    cluster.kill_a_node()
    again = cluster.start("run", "--resume", str(group.paths.root))
    assert again.wait(400) == 0, cluster.said()
    check_promises(group, RUNS)


def test_no_two_runs_ever_hold_one_gpu(cluster: Cluster) -> None:
    runner, group = cluster.plan(5, f"{SUBMIT}; sleep 1", "--gpus", "1")
    assert runner.wait(300) == 0, cluster.said()
    check_promises(group, 5)
    used = []
    for run in group.runs():
        (gpu,) = run.record.conditions.gpus
        used.append((gpu, *(datetime.fromisoformat(str(at)) for at in (run.record.started_at, run.record.ended_at))))
    assert {gpu for gpu, _, _ in used} == {"0", "1"}, "one node has two"
    for (gpu, begun, ended), (other, later, _) in combinations(sorted(used, key=lambda use: use[1]), 2):
        assert gpu != other or ended <= later, (begun, ended, later)


@pytest.mark.skipif(not WHOLE, reason="takes a minute: only with MLEBENCH_CLUSTERS=whole")
def test_a_broken_node_does_not_eat_the_work(cluster: Cluster) -> None:
    require_sandbox("bubblewrap")
    (cluster.programs / "broken").write_text(f"{cluster.node}\n")
    runner, group = cluster.plan(6, SUBMIT, sandbox="bubblewrap")
    assert runner.wait(300) == 0, cluster.said()
    attempts = [attempt for run in group.runs() for attempt in run.record.attempts]
    assert {run.record.ended for run in group.runs()} == {"finished"}
    assert {attempt.node for attempt in attempts if attempt.ended != "finished"} == {cluster.node}


def test_ctrl_c_detaches_and_cancel_ends(cluster: Cluster) -> None:
    runner, large = cluster.plan(1, SUBMIT, "--cpus", "36")
    wait_until(lambda: "a run needs 36 CPUs" in cluster.said(), "the reason was shown", details=cluster.said)
    assert cluster.start("runs", "cancel", str(large.paths.root)).wait(120) == 0, cluster.said()
    assert runner.wait(120) == 130, cluster.said()

    runner, group = cluster.plan(2, f"{SUBMIT}; sleep 1000")
    wait_until(lambda: states(group) == ["running"] * 2, "both runs were running", details=cluster.said)
    submitted = ".work/*/home/submission/submission.csv"
    wait_until(lambda: len(list(group.paths.root.glob(submitted))) == 2, "both had submitted something")
    runner.send_signal(signal.SIGINT)
    assert runner.wait(120) == 130
    assert states(group) == ["running"] * 2
    assert cluster.start("runs", "cancel", str(group.paths.root)).wait(120) == 0, cluster.said()
    wait_until(lambda: states(group) == ["planned"] * 2, "both runs were planned again", details=cluster.said)
    for run in group.runs():
        assert (run.paths.attempt(1) / "submission" / "submission.csv").is_file()
        assert json.loads(run.paths.record.read_text())["attempts"][0]["ended"] == "cancelled"
    attached = cluster.start("run", "--resume", str(group.paths.root))
    wait_until(lambda: states(group) == ["running"] * 2, "both runs were running again", details=cluster.said)
    assert cluster.start("runs", "cancel", str(group.paths.root)).wait(120) == 0, cluster.said()
    assert attached.wait(120) == 130, cluster.said()
    wait_until(lambda: states(group) == ["planned"] * 2, "both runs were planned again", details=cluster.said)
    wait_until(lambda: not processes(str(group.paths.root)), "no process of the group was left", 60)
