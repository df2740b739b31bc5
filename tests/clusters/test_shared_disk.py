"""Hosts that share a disk and no clock: on a real network disk (sshfs), and a thousand kills in a simulation."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import pytest
from support.live_clusters import SCRIPT, WHOLE, check_promises, clusters, require, states
from support.run_fixtures import SUBMIT
from support.waiting import wait_until

from mlebench.core import leases
from mlebench.core.leases import EXPIRY, Lease, LeaseLostError
from mlebench.records import now, read, write
from mlebench.records.run import RUNNING, Attempt, RunRecord
from mlebench.records.run_groups import Group, Run
from mlebench.registry import Competition
from mlebench.run import publish as publishing
from mlebench.run.publish import finalize, is_published, stage

KILLS = 1000


class KilledError(Exception):
    """As if by kill -9, in the middle of something."""


class World:
    """Runs in folders, true time, and workers on hosts that die at any step, stall, and have their own clocks."""

    def __init__(self, folder: Path, chance: random.Random):
        self.folder, self.chance = folder, chance
        self.now = 0.0
        self.folders: list[Path] = []
        self.open: list[Path] = []
        self.counted: dict[Path, str] = {}  # whose result counts: once it does, it always does
        self.finished: list[str] = []  # tokens of all who believe they have published

    def add_run(self) -> None:
        folder = self.folder / f"run_{uuid4()}"
        folder.mkdir()
        record = RunRecord(run_id=str(uuid4()), competition="c", seed=len(self.folders), planned_at=None)
        write(folder / "run.json", record)
        self.folders.append(folder)
        self.open.append(folder)

    def left(self) -> list[Path]:
        self.open = [folder for folder in self.open if not Run.read(folder).record.is_final]
        return self.open

    def look(self) -> None:
        for folder in self.folders:
            record = folder / "result" / "record.json"
            if record.is_file():
                token = json.loads(record.read_text())["attempts"][-1]["token"]
                assert self.counted.setdefault(folder, token) == token, "a result was replaced"

    def worker(self) -> Iterator[None]:
        offset = self.chance.uniform(-300, 300)
        clock = lambda: self.now + offset  # noqa: E731
        while left := self.left():
            folder = self.chance.choice(left)
            lease = yield from self._acquire(folder, clock)
            if lease:
                with contextlib.suppress(LeaseLostError):
                    yield from self._work(folder, lease)

    def _acquire(self, folder: Path, clock: Callable[[], float]) -> "Iterator[None]":
        """As `acquire` does it from another host, one check at a time."""
        place = folder / "leases"
        place.mkdir(exist_ok=True)
        number = leases._highest(place)
        if number is not None:
            begun, seen = clock(), leases._read(place / f"{number}.json")
            while seen is not None and not seen.get("released") and clock() - begun < EXPIRY:
                yield
                again = leases._read(place / f"{number}.json")
                if again is not None and again.get("counter") != seen.get("counter") and not again.get("released"):
                    return None
                seen = again
            if seen is None:
                return None
        yield
        lease = Lease(place, (number or 0) + 1, clock)
        return lease if lease.create() else None

    def _work(self, folder: Path, lease: Lease) -> Iterator[None]:
        run = Run.read(folder)
        if is_published(run):
            finalize(run)
        if run.record.is_final or is_published(run):
            lease.release()
            return
        yield
        number = len(run.record.attempts) + 1
        attempt = Attempt(number=number, token=lease.token, host="x", started_at=now())
        attempts = [*run.record.attempts, attempt]
        run = run.write(state=RUNNING, attempts=attempts)
        for _ in range(self.chance.randrange(5, 25)):
            yield
            if lease.is_due:
                lease.renew()
        staged = stage(run, lease)
        yield
        lease.renew()
        yield
        publishing.publish_result(run, staged, lease, state="ended", ended="finished", attempts=attempts)
        publishing.finalize(run)
        self.finished.append(lease.token)
        yield
        lease.release()


def test_a_thousand_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(20261116)
    world = World(tmp_path, chance)

    def dying_finalize(run: Run) -> Run:
        """A worker that has just renamed a result may die before the run's record says so."""
        if chance.random() < 0.2:
            raise KilledError
        return finalize(run)

    monkeypatch.setattr(publishing, "finalize", dying_finalize)
    kills = _live_through(world, chance)
    world.look()
    assert kills >= KILLS
    assert set(world.counted) == set(world.folders), "a run was lost"
    for folder in world.folders:
        run = Run.read(folder)
        assert run.record.attempts[-1].token == world.counted[folder]
        assert not list(folder.glob("result.*"))
    # A worker that believes it has published while another's result counts has worked for nothing but done no harm.
    assert len(world.finished) <= len(world.folders) * 1.1


def _live_through(world: World, chance: random.Random) -> int:
    """Six workers, until enough were killed and nothing is left to do; returns how many were killed."""
    workers = [world.worker() for _ in range(6)]
    stalled = dict.fromkeys(range(6), 0.0)
    kills = 0
    while kills < KILLS or world.left():
        while kills < KILLS and len(world.left()) < 10:
            world.add_run()
        world.now += chance.uniform(0.2, 2)
        place = chance.randrange(6)
        if stalled[place] > world.now:
            continue
        try:
            next(workers[place])
            if kills < KILLS and chance.random() < 0.08:
                raise KilledError
        except (KilledError, StopIteration) as end:
            kills += isinstance(end, KilledError)
            workers[place] = world.worker()
        if chance.random() < 0.01:
            stalled[place] = world.now + chance.uniform(10, 200)  # a disk that does not answer, a suspended host
        if chance.random() < 0.05:
            world.look()
    return kills


# What every Python on a host runs first: leases that expire sooner, and the host's own clock. (libfaketime would be
# another way, but under it `time.sleep` fails in Python.)
SITE = """
import time
from datetime import UTC, datetime, timedelta
from mlebench import records
from mlebench.core import leases

leases.EXPIRY, leases.GIVE_UP, leases.RENEWAL = 10.0, 6.0, 1.0
true_time = time.time
time.time = lambda: true_time() + {ahead}
records.now = lambda: (datetime.now(UTC) + timedelta(seconds={ahead})).isoformat(timespec="milliseconds")
"""


class Host:
    """A host with its own name and clock, which sees the disk through its own mount."""

    def __init__(self, name: str, folder: Path, ahead: int):
        self.folder, self.name, self.ahead = folder, name, ahead
        self.disk = folder / "mounted"

    def start(self, *words: str, data: Path) -> "subprocess.Popen[bytes]":
        site = self.folder / f"python-{self.name}"
        site.mkdir(exist_ok=True)
        (site / "sitecustomize.py").write_text(SITE.format(ahead=self.ahead))
        mount = f"{SCRIPT} mount {self.folder / 'ssh'} {self.folder / 'disk'} {self.disk} -o dir_cache=no"
        # A time namespace moves the monotonic clock too.
        host = ["unshare", "--mount", "--uts", "--time", "--monotonic", str(self.ahead), "--fork", "bash", "-c"]
        command = [*host, f'hostname {self.name} && {mount} && exec "$@"', "-", sys.executable, "-P", "-m", "mlebench"]
        env = {**os.environ, "MLEBENCH_DATA_DIR": str(data), "PYTHONPATH": str(site)}
        with (self.folder / f"{self.name}.said").open("ab") as said:
            return subprocess.Popen([*command, *words], env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said)

    def said(self) -> str:
        return (self.folder / f"{self.name}.said").read_text()

    @staticmethod
    def die(process: "subprocess.Popen[bytes]") -> None:
        """Every process of the host ends at once, as in a power cut; not the mount, which then ends by itself."""
        space = Path(f"/proc/{process.pid}/ns/uts").readlink()
        assert space != Path("/proc/self/ns/uts").readlink()
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdigit() and (folder / "ns" / "uts").readlink() == space:
                    os.kill(int(folder.name), signal.SIGKILL)
        process.wait()


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    require("sshfs", "sshd", "unshare")
    folder = Path(tempfile.mkdtemp(prefix="shared-"))
    (folder / "disk").mkdir()
    (folder / "mounted").mkdir()
    clusters("sshd", folder / "ssh")
    try:
        yield Host("alpha", folder, 0), Host("beta", folder, 300)
    finally:
        clusters("stop", folder / "ssh")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.timeout(1800)
def test_two_hosts_with_clocks_five_minutes_apart(hosts: tuple[Host, Host], titanic: Competition) -> None:
    alpha, beta = hosts
    count, data = (30 if WHOLE else 6), titanic.paths.data_dir
    runs = alpha.disk / "runs"
    options = ["--agent-command", f"{SUBMIT}; sleep 5", "-c", titanic.id, "--sandbox", "process", "--workers", "2"]
    first = alpha.start("run", *options, "--seeds", str(count), "--runs-dir", str(runs), data=data)
    planned = "disk/runs/*/group.json"
    (record,) = wait_until(lambda: list(alpha.folder.glob(planned)), "the group was planned", details=alpha.said)
    group = Group.read(record.parent)
    second = beta.start("run", "--resume", str(runs / group.record.id), "--workers", "2", data=data)
    wait_until(lambda: states(group).count("running") >= 3, "three runs were running", details=beta.said)
    Host.die(first)
    assert second.wait(500) == 0, beta.said()
    check_promises(group, count)
    made = [attempt for run in group.runs() for attempt in run.record.attempts]
    assert {attempt.host for attempt in made} == {"alpha", "beta"}
    assert any(attempt.ended == "cancelled" for attempt in made)
    began = {attempt.host: attempt.started_at for attempt in made}
    ahead = datetime.fromisoformat(began["beta"]) - datetime.fromisoformat(began["alpha"])
    assert ahead.total_seconds() > 250


@pytest.mark.timeout(1800)
def test_two_hosts_prepare_one_competition(hosts: tuple[Host, Host]) -> None:
    alpha, beta = hosts
    data = alpha.disk / "data"
    words = ["prepare", "--twin", "-c", "spaceship-titanic"]
    both = [host.start(*words, data=data) for host in hosts]
    assert [process.wait(240) for process in both] == [0, 0], alpha.said() + beta.said()
    assert alpha.start("verify", "spaceship-titanic", data=data).wait(120) == 0, alpha.said()
    assert sorted(path.name for path in (alpha.folder / "disk/data/spaceship-titanic").iterdir()) == [
        "lock",
        "prepared",
        "raw",
        "twin.json",
    ]


def test_a_record_that_grows_is_read_whole_through_the_default_cache_of_sshfs(hosts: tuple[Host, Host]) -> None:
    """The first read after a file was replaced is cut to the size that the old one had."""
    alpha, _ = hosts
    clusters("mount", alpha.folder / "ssh", alpha.folder / "disk", alpha.disk)
    record = RunRecord(run_id="1", competition="c", seed=0, planned_at=None)
    try:
        for number in range(5):
            record = record.changed(detail="x" * 50 * number)
            write(alpha.folder / "disk" / "run.json", record)
            assert read(alpha.disk / "run.json", RunRecord) == record
            for _ in range(3):  # now its size is in the cache
                assert (alpha.disk / "run.json").stat().st_size
                assert list(alpha.disk.iterdir()) == [alpha.disk / "run.json"]
                time.sleep(0.05)
    finally:
        subprocess.run(["umount", alpha.disk], check=True)
