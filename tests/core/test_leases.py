"""Of all processes that try to work on a run, one does; a lost lease is noticed; nothing depends on equal clocks."""

import errno
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from mlebench.core import files, leases
from mlebench.core.errors import PrerequisiteError
from mlebench.core.leases import EXPIRY, GIVE_UP, Lease, LeaseLostError, acquire, held
from mlebench.core.processes import Process


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "leases"


def test_one_holds_it_until_it_is_released(folder: Path) -> None:
    first = acquire(folder)
    assert first is not None
    assert acquire(folder) is None
    first.require()
    first.release()
    second = acquire(folder)
    assert second is not None
    with pytest.raises(LeaseLostError):
        first.require()
    first.release()  # which must not release what another holds
    second.require()


def test_a_killed_process_s_lease_can_be_taken_over_at_once(folder: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from mlebench.core.leases import acquire\n"
        "assert acquire(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(folder)], check=False)
    assert leases.holder(folder) is not None
    assert acquire(folder, wait=False) is not None


def test_a_reused_process_id_is_not_the_holder(folder: Path) -> None:
    lease = acquire(folder)
    assert lease is not None
    (path,) = folder.glob("*.json")
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"started": content["started"] - 1}))
    assert acquire(folder, wait=False) is not None


def test_one_of_many_processes_gets_it(folder: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from mlebench.core.leases import acquire\n"
        "print(acquire(Path(sys.argv[1])) is not None, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(folder)]
    racing = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    try:
        answers = [process.stdout.readline().strip() for process in racing if process.stdout]
        assert sorted(answers) == ["False"] * 5 + ["True"]
    finally:
        for process in racing:
            process.communicate("")


class Clock:
    def __init__(self, now: float):
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every holder looks as if it were on another host."""
    monkeypatch.setattr(Process, "is_here", property(lambda self: False))


def test_on_another_host_a_moving_counter_means_alive(
    folder: Path, elsewhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, ours = Clock(1_000_000.0), Clock(5.0)  # two clocks that have nothing in common
    held = acquire(folder, clock=theirs)
    assert held is not None

    def pass_time(seconds: float) -> None:
        ours.now += seconds
        theirs.now += seconds
        held.renew()

    monkeypatch.setattr(time, "sleep", pass_time)
    assert acquire(folder, clock=ours) is None
    held.require()


def test_on_another_host_a_stopped_counter_means_dead(
    folder: Path, elsewhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, ours = Clock(1_000_000.0), Clock(5.0)
    held = acquire(folder, clock=theirs)
    assert held is not None

    def pass_time(seconds: float) -> None:
        ours.now += seconds
        theirs.now += seconds

    monkeypatch.setattr(time, "sleep", pass_time)
    begun = ours.now
    assert acquire(folder, clock=ours) is not None
    assert ours.now - begun >= EXPIRY
    with pytest.raises(LeaseLostError):
        held.require()
    with pytest.raises(LeaseLostError):
        held.renew()


def test_a_holder_that_cannot_renew_gives_up_before_others_may_take_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(0.0)
    held = acquire(folder, clock=clock)
    assert held is not None

    def fail(*_: object) -> None:
        raise OSError("the disk does not answer")

    monkeypatch.setattr(leases, "rewrite", fail)
    clock.now = GIVE_UP - 1
    held.renew()
    clock.now = GIVE_UP + 1
    with pytest.raises(LeaseLostError):
        held.renew()
    assert GIVE_UP < EXPIRY


def test_nothing_made_under_a_lost_lock_is_published(folder: Path) -> None:
    with held(folder) as require:
        require()
        assert Lease(folder, 2).create()  # another host, which thought us dead
        with pytest.raises(PrerequisiteError, match="another has taken over"):
            require()
    Lease(folder, 2).release()  # a stranger cannot
    assert leases.may_be_held(folder), "it is the other's still"


def test_a_stalled_holder_continues_if_nobody_took_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, slept = Clock(0.0), []
    monkeypatch.setattr(time, "sleep", slept.append)
    lease = acquire(folder, clock=clock)
    assert lease is not None
    clock.now = 10 * EXPIRY
    lease.reclaim()
    assert slept, "another may have been about to take over"


def fill_disk(monkeypatch: pytest.MonkeyPatch, *, in_place: bool) -> None:
    """No new file can be written; `in_place`: nor can what is there be written over."""
    real_open = Path.open

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def fail_to_write(path: Path, mode: str = "r", **options: Any) -> Any:
        return fail() if "+" in mode else real_open(path, mode, **options)

    monkeypatch.setattr(files, "write_whole", fail)
    if in_place:
        monkeypatch.setattr(Path, "open", fail_to_write)


def test_a_process_acquires_again_what_it_gave_up_although_the_disk_recorded_no_release(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It was locked out for ever: the highest lease named its own process, which was alive."""
    clock = Clock(0.0)
    lease = acquire(folder, clock=clock)
    assert lease is not None
    clock.now = GIVE_UP + 1
    with pytest.raises(LeaseLostError):
        lease.require()
    assert acquire(folder, clock=clock) is None, "the object may still reclaim it"
    with monkeypatch.context() as patched:
        fill_disk(patched, in_place=True)
        lease.release()
    assert "could not be released (No space left on device)" in caplog.text
    assert leases.may_be_held(folder), "other processes cannot know"
    again = acquire(folder, clock=clock)
    assert again is not None
    assert again.number == lease.number + 1
    assert acquire(folder, clock=clock) is None, "another object of this process holds it now"
    lease.release()
    again.require()


def test_a_full_disk_still_records_a_release(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = acquire(folder)
    assert lease is not None
    with monkeypatch.context() as patched:
        fill_disk(patched, in_place=False)
        lease.release()
    assert not leases.may_be_held(folder)
    monkeypatch.setattr(leases, "_given_up", set())  # as another process sees it
    assert acquire(folder, wait=False) is not None


def test_a_lease_whose_acquisition_failed_does_not_lock_its_process_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", fail)
        with pytest.raises(OSError, match="Input/output"):
            acquire(folder)
    assert leases.may_be_held(folder), "it was created"
    assert acquire(folder, wait=False) is not None


def test_a_number_that_others_have_passed_is_not_held(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process stalls before it creates its lease; others acquire, release and acquire meanwhile."""
    first = acquire(folder)
    assert first is not None
    first.release()
    create = Lease.create

    def create_late(lease: Lease) -> bool:
        monkeypatch.undo()
        second = acquire(folder)
        assert second is not None
        second.release()
        holder = acquire(folder)
        assert holder is not None
        assert create(lease)
        holder.require()
        return True

    monkeypatch.setattr(Lease, "create", create_late)
    assert acquire(folder) is None


def test_a_released_lease_cannot_be_renewed(folder: Path) -> None:
    lease = acquire(folder)
    assert lease is not None
    lease.release()
    for use in (lease.renew, lease.require, lease.reclaim):
        with pytest.raises(LeaseLostError, match="was released"):
            use()
    assert acquire(folder, wait=False) is not None


WORKERS = st.integers(0, 2)
ACTS = st.sampled_from(["renew", "release", "fill the disk and release", "die", "finish", "snatch"])
PLANS = st.lists(st.tuples(st.sampled_from([1, 20, 39, 41, 55, 59, 61, 80]), WORKERS, ACTS), max_size=4)
ATTENTIVE = st.sets(WORKERS)
SLOW = 15.0  # seconds that publishing may take


class TwoHosts(RuleBasedStateMachine):
    """Workers on two hosts whose clocks are five minutes apart, with one folder and the real code.

    They stall and die at any time, even while another watches whether they are dead. A worker that has lost its lease
    releases it, as every caller does, and the disk may refuse to record that. What must hold at any moment of true
    time: only one of those that want to publish may, and while it does nobody takes over; no number is used twice; and
    nobody waits for the dead, nor for itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self.scratch.name) / "leases"
        self.now = 0.0
        self.patches = ExitStack()
        self.lives = [0] * 3  # how many processes a worker has been
        self.given_up: dict[Process, set[str]] = defaultdict(set)  # what each process remembers
        self.acting = 0
        self.disk_is_full = False
        self.held: dict[int, Lease] = {}
        self.shown: dict[int, float] = {}  # when a worker last showed a sign of life
        self.publishing: dict[int, float] = {}  # until when; it takes a while on a slow disk
        self.numbers: list[int] = []
        self.attentive: set[int] = set()
        self.plan: list[tuple[float, int, str]] = []
        write = files.rewrite
        for where, name, what in (
            (leases, "rewrite", lambda path, text: self.refuse() if self.disk_is_full else write(path, text)),
            (leases, "_given_up", set()),
            (Process, "current", lambda: self.process(self.acting)),
            (Process, "is_here", property(lambda process: process.host == f"host {self.acting % 2}")),
            (Process, "is_alive", property(lambda process: process == self.process(process.pid))),
            (time, "sleep", self.sleep),
        ):
            self.patches.enter_context(patch.object(where, name, what))

    @property
    def acting(self) -> int:
        return self._acting

    @acting.setter
    def acting(self, worker: int) -> None:
        self._acting = worker
        leases._given_up = self.given_up[self.process(worker)]

    def process(self, worker: int) -> Process:
        return Process(f"host {worker % 2}", worker, self.lives[worker])

    def refuse(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def sleep(self, seconds: float) -> None:
        """The watcher sleeps; others act meanwhile."""
        watcher = self.acting
        self.now += seconds
        for worker in self.attentive & self.held.keys() - {watcher}:
            if self.held[worker].is_due:
                self.act(worker, "renew")
        due = [item for item in self.plan if item[0] <= self.now and item[1] != watcher]
        self.plan = [item for item in self.plan if item not in due]
        for _, worker, act in due:
            self.act(worker, act)
        self.acting = watcher
        self.one_may_publish()

    def act(self, worker: int, act: str) -> None:
        self.acting = worker
        if act == "die":
            self.forget(worker)
            self.lives[worker] += 1
        elif act == "snatch":
            self.acquire(worker, wait=False)
        elif worker in self.held:
            lease = self.held[worker]
            if act == "release":
                self.release(worker)
            elif act == "fill the disk and release":
                self.disk_is_full = True
                self.release(worker)
            elif act == "renew":
                if self.unless_lost(worker, lease.renew):
                    self.shown[worker] = self.now
            elif self.unless_lost(worker, lease.require):
                self.publishing[worker] = self.now + SLOW

    def unless_lost(self, worker: int, act: Callable[[], None]) -> bool:
        try:
            act()
        except LeaseLostError:
            self.release(worker)
            return False
        return True

    def release(self, worker: int) -> None:
        lease = self.held[worker]
        self.forget(worker)
        lease.release()

    def forget(self, worker: int) -> None:
        self.held.pop(worker, None)
        self.publishing.pop(worker, None)

    def acquire(self, worker: int, *, wait: bool) -> bool:
        self.acting = worker
        if worker in self.held:
            return True
        life = self.lives[worker]
        lease = acquire(self.folder, wait=wait, clock=lambda: self.now + 300 * (worker % 2))
        if lease and life == self.lives[worker]:
            assert lease.number > max(self.numbers, default=0)
            assert not [other for other, until in self.publishing.items() if until > self.now]
            assert not [other for other in self.held if self.now - self.shown[other] < EXPIRY]
            self.shown[worker] = self.now
            self.numbers.append(lease.number)
            self.held[worker] = lease
        return lease is not None

    @rule(seconds=st.floats(0.1, 90), attentive=ATTENTIVE)
    def time_passes(self, seconds: float, attentive: set[int]) -> None:
        self.acting, self.attentive, until = -1, attentive, self.now + seconds
        while self.now < until:
            self.sleep(1)

    @rule(full=st.booleans())
    def disk_fills_up_or_has_room_again(self, full: bool) -> None:
        self.disk_is_full = full

    @rule(worker=WORKERS, act=ACTS)
    def somebody_acts(self, worker: int, act: str) -> None:
        self.act(worker, act)

    @rule(worker=WORKERS, attentive=ATTENTIVE, plan=PLANS, finishes=st.sampled_from([39, 41, 59, 99]))
    def somebody_tries_to_take_over(
        self, worker: int, attentive: set[int], plan: list[tuple[float, int, str]], finishes: float
    ) -> None:
        plan = [*plan, *((finishes, holder, "finish") for holder in self.held)]
        self.attentive, self.plan = attentive, [(self.now + after, who, act) for after, who, act in plan]
        self.acquire(worker, wait=True)
        self.plan = []

    @rule(worker=WORKERS, plan=PLANS)
    def somebody_ends_after_a_long_while(self, worker: int, plan: list[tuple[float, int, str]]) -> None:
        """As `held` does it."""
        if worker not in self.held:
            return
        self.acting, self.attentive = worker, set()
        self.plan = [(self.now + after / 10, who, act) for after, who, act in plan]
        self.shown[worker] = self.now
        if self.unless_lost(worker, self.held[worker].reclaim):
            self.publishing[worker] = self.now + SLOW
        self.plan = []

    @rule(worker=WORKERS)
    def all_others_die(self, worker: int) -> None:
        self.plan = []
        for other in {0, 1, 2} - {worker}:
            self.act(other, "die")
        if worker in self.held:
            self.act(worker, "renew")
        assert self.acquire(worker, wait=True), "the dead do not hold anybody up"

    @invariant()
    def one_may_publish(self) -> None:
        sure = []
        for worker, lease in self.held.items():
            with suppress(LeaseLostError):
                lease.require()
                sure.append(worker)
        assert len(sure) <= 1

    def teardown(self) -> None:
        self.patches.close()
        self.scratch.cleanup()


TestTwoHosts = TwoHosts.TestCase
TestTwoHosts.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
