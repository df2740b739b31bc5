"""Of all who try to work on a run, one does; a lease that is lost is noticed; nothing depends on equal clocks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mlebench import lease as leases
from mlebench.lease import EXPIRY, GIVE_UP, Lease, LeaseLostError, acquire
from mlebench.processes import Process


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


def test_of_a_process_that_was_killed_it_can_be_taken_over_at_once(folder: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from mlebench.lease import acquire\n"
        "assert acquire(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(folder)], check=False)
    assert leases.holder(folder) is not None
    assert acquire(folder, wait=False) is not None


def test_a_process_id_that_was_given_out_again_is_not_the_holder(folder: Path) -> None:
    lease = acquire(folder)
    assert lease is not None
    (path,) = folder.glob("*.json")
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"started": content["started"] - 1}))
    assert acquire(folder, wait=False) is not None


def test_one_of_many_processes_gets_it(folder: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from mlebench.lease import acquire\n"
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


def test_on_another_host_a_counter_that_moves_is_a_sign_of_life(
    folder: Path, elsewhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, ours = Clock(1_000_000.0), Clock(5.0)  # two clocks that have nothing in common
    held = acquire(folder, clock=theirs)
    assert held is not None

    def pass_time(seconds: float) -> None:
        ours.now += seconds
        theirs.now += seconds
        held.renew()

    monkeypatch.setattr(leases.time, "sleep", pass_time)
    assert acquire(folder, clock=ours) is None
    held.require()


def test_on_another_host_a_counter_that_stands_still_is_death(
    folder: Path, elsewhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs, ours = Clock(1_000_000.0), Clock(5.0)
    held = acquire(folder, clock=theirs)
    assert held is not None

    def pass_time(seconds: float) -> None:
        ours.now += seconds
        theirs.now += seconds

    monkeypatch.setattr(leases.time, "sleep", pass_time)
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

    monkeypatch.setattr(leases, "write_whole", fail)
    clock.now = GIVE_UP - 1
    held.renew()
    clock.now = GIVE_UP + 1
    with pytest.raises(LeaseLostError):
        held.renew()
    assert GIVE_UP < EXPIRY


class Workers(RuleBasedStateMachine):
    """Workers on hosts of their own, with clocks of their own, that stall and die at any time, over one folder.

    What must hold: of all workers that believe, at one moment of true time, that they hold the lease, there is one; and
    of all that try to publish, one succeeds at most.
    """

    @initialize(offsets=st.lists(st.floats(-300, 300), min_size=3, max_size=3))
    def begin(self, offsets: list[float]) -> None:
        import tempfile

        self.scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self.scratch.name) / "leases"
        self.result = Path(self.scratch.name) / "result"
        self.now = 0.0
        self.offsets = offsets
        self.held: dict[int, Lease] = {}
        self.watched: dict[int, tuple[object, float]] = {}
        self.published: list[int] = []

    def clock(self, worker: int) -> "Clock":
        machine = self

        class Own(Clock):
            def __call__(self) -> float:
                return machine.now + machine.offsets[worker]

        return Own(0.0)

    @rule(seconds=st.floats(0.1, 90))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(worker=st.integers(0, 2))
    def try_to_acquire(self, worker: int) -> None:
        """As `acquire` does from another host, one look at a time."""
        if worker in self.held:
            return
        number = leases._highest(self.folder)
        if number is not None:
            seen = leases._read(self.folder / f"{number}.json") or {}
            sign = (number, seen.get("counter"), seen.get("released"))
            if not seen.get("released"):
                before, since = self.watched.get(worker, (None, 0.0))
                if before != sign:
                    self.watched[worker] = (sign, self.now)
                    return
                if self.now - since < EXPIRY:
                    return
        self.folder.mkdir(exist_ok=True)
        lease = Lease(self.folder, (number or 0) + 1, self.clock(worker))
        if lease.create():
            self.held[worker] = lease

    @rule(worker=st.integers(0, 2))
    def renew(self, worker: int) -> None:
        if worker in self.held:
            try:
                self.held[worker].renew()
            except LeaseLostError:
                del self.held[worker]

    @rule(worker=st.integers(0, 2))
    def die(self, worker: int) -> None:
        self.held.pop(worker, None)

    @rule(worker=st.integers(0, 2))
    def release(self, worker: int) -> None:
        if worker in self.held:
            self.held.pop(worker).release()

    @precondition(lambda self: self.held)
    @rule(worker=st.integers(0, 2))
    def publish(self, worker: int) -> None:
        if worker not in self.held:
            return
        try:
            self.held[worker].require()
        except LeaseLostError:
            del self.held[worker]
            return
        staged = Path(self.scratch.name) / f"staged{worker}"
        staged.mkdir()
        (staged / "record.json").write_text("{}")
        try:
            staged.rename(self.result)
            self.published.append(worker)
        except OSError:
            (staged / "record.json").unlink()
            staged.rmdir()

    @invariant()
    def one_holder(self) -> None:
        sure = []
        for worker, lease in getattr(self, "held", {}).items():
            try:
                lease.require()
                sure.append(worker)
            except LeaseLostError:
                continue
        assert len(sure) <= 1
        assert len(getattr(self, "published", [])) <= 1

    def teardown(self) -> None:
        if hasattr(self, "scratch"):
            self.scratch.cleanup()


TestWorkers = Workers.TestCase
TestWorkers.settings = settings(max_examples=60, stateful_step_count=40)
