"""A process that grades each submission in a fork of itself, with limits.

Whatever a competition's code does (ends its process, crashes, uses up the memory), it only affects the fork. The
process that forks has the libraries loaded and no threads of its own. It is neither a fork of ours, which may have
threads, nor one of multiprocessing's, which would run a caller's script again.

A submission that takes far more than the gold submission is invalid, unless gold also takes too much here and now.
"""

import io
import logging
import math
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from logging.handlers import QueueHandler
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any, NamedTuple, Self

from mlebench.core.errors import PrerequisiteError
from mlebench.core.memory import LOOK, attainable_memory, bytes_of_peak, used_memory
from mlebench.core.os_errors import reason_of
from mlebench.core.outcomes import GRADER_ERROR, INVALID, LIMIT
from mlebench.core.untrusted import UntrustedFileError, open_untrusted
from mlebench.core.workers import thread_variables
from mlebench.data.gold import data_stamp, keep_cost, recorded_cost
from mlebench.grade.hashing import HashedStream
from mlebench.grade.limits import Allowance, size_of
from mlebench.grade.one import Verdict
from mlebench.grade.row import GoldJob, Job, Unjudged, dead_row
from mlebench.records.data import GoldCost
from mlebench.registry import Competition
from mlebench.scoring import CompetitionReport
from mlebench.validate.reading import read_table

logger = logging.getLogger(__name__)

MEASURING = 3600.0  # the most seconds to spend on finding out what gold takes
MEMORY_SHORT = "most likely there was not enough memory"
OUT_OF_MEMORY = "there was not enough memory on this machine to grade it"
# So that no fork has to load them.
_LOADED = (
    "mlebench.data.preload",
    "mlebench.metrics",
    "mlebench.competitions",
    "pyarrow.pandas_compat",
    "pyarrow.vendored.version",
    "yaml",
)
_START = "import sys; sys.path[:] = sys.argv[2:]; from mlebench.grade.worker import serve; serve(int(sys.argv[1]))"

# What gold takes, by the stamp of its data; only one thread at a time finds it out.
_costs: dict[str, GoldCost | None] = {}
_measuring: dict[str, Lock] = {}


class Bounds(NamedTuple):
    """What a fork may use; None: as much as it likes."""

    seconds: float | None = None  # of CPU time
    memory: int | None = None  # bytes


class Exceeded(NamedTuple):
    """A fork went beyond its bounds: `time` or `memory`."""

    resource: str


class Done(NamedTuple):
    """How a fork ended, and what it used."""

    outcome: Any  # its job's, or Exceeded, or a Verdict on how it ended
    seconds: float
    memory: int


class Worker:
    """Grades rows one after another; starts when needed, and again after it was killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._line: Any = None
        self._stopped = False

    def grade(self, job: Job) -> CompetitionReport | Unjudged:
        """OSError if no process can be started; everything else that goes wrong is an outcome."""
        competition, cost = self._known(job)
        allowed = Allowance.for_size(size_of(job.path), cost, interval=job.interval)
        seconds, memory = job.limits.seconds or math.inf, job.limits.memory or math.inf
        bounds = Bounds(allowed.seconds, int(min(memory, allowed.memory)))
        try:
            outcome = self._done(job, bounds, min(seconds, allowed.wall_seconds)).outcome
        except TimeoutError:
            if seconds <= allowed.wall_seconds:
                outcome = Verdict(LIMIT, reason=f"grading took longer than {seconds:g} s")
            else:
                outcome = Verdict(GRADER_ERROR, reason=_stalled(allowed))
        except EOFError:
            outcome = Verdict(GRADER_ERROR, reason=f"the process that grades was killed; {MEMORY_SHORT}")
        if isinstance(outcome, Exceeded):
            if outcome.resource == "memory" and memory < allowed.memory:
                outcome = Verdict(LIMIT, reason=f"grading took more than {memory} bytes of memory")
            else:
                outcome = self._blamed(outcome, allowed, competition, cost)._replace(sha256=_sha256(job))
        if self._stopped:
            raise CancelledError
        if isinstance(outcome, Verdict):
            logger.log(
                logging.WARNING if outcome.status == INVALID else logging.ERROR, "%s: %s", job.path, outcome.reason
            )
            return dead_row(job, outcome)
        return outcome

    def _known(self, job: Job) -> tuple[Competition | None, GoldCost | None]:
        """The competition, and what its gold submission takes; grading says what is wrong if there is none."""
        try:
            competition = job.registry.get_competition(job.competition_id)
            stamp = data_stamp(competition)
        except (PrerequisiteError, OSError):
            return None, None
        with _measuring.setdefault(stamp, Lock()):
            if stamp not in _costs:
                _costs[stamp] = recorded_cost(competition) or self._measured(competition)
        return competition, _costs[stamp]

    def _measured(self, competition: Competition) -> GoldCost | None:
        cost = self._gold(competition, Bounds(), MEASURING)
        if cost:
            keep_cost(competition, cost)
        return cost

    def _gold(self, competition: Competition, bounds: Bounds, seconds: float) -> GoldCost | None:
        """What it takes to grade gold now; None if it takes too much, or cannot be graded."""
        try:
            done = self._done(GoldJob(competition), bounds, seconds)
        except (EOFError, TimeoutError):
            return None
        return GoldCost(round(done.seconds, 3), done.memory, done.outcome) if isinstance(done.outcome, int) else None

    def _blamed(
        self, exceeded: Exceeded, allowed: Allowance, competition: Competition | None, cost: GoldCost | None
    ) -> Verdict:
        """Who is at fault if grading took more than it may: the submission, unless gold takes too much as well."""
        amounts = {"time": f"{allowed.seconds:g} s of CPU time", "memory": f"{allowed.memory / 1e9:.1f} GB of memory"}
        took = f"grading took more than {amounts[exceeded.resource]}"
        if competition is None or cost is None:
            return Verdict(GRADER_ERROR, reason=f"{took}, and the gold submission cannot be graded for comparison")
        least = Allowance.for_size(cost.size, cost)
        if self._gold(competition, Bounds(*least), least.wall_seconds) is None:
            return Verdict(GRADER_ERROR, reason=f"{took}, and grading the gold submission takes too much here as well")
        return Verdict(INVALID, reason=f"{took}, the most for a submission of its size in this competition")

    def _done(self, job: Job | GoldJob, bounds: Bounds, seconds: float) -> Done:
        """How a job ended; TimeoutError if its time is up, EOFError if the process that forks was killed, twice."""
        for is_last in (False, True):
            try:
                self._start()
                return self._answer(job, bounds, seconds)
            except TimeoutError:
                self.end()
                raise
            except (EOFError, ConnectionError):  # perhaps we are about to be killed too, like all of a cluster's job
                self.end()
                if self._stopped:
                    raise CancelledError from None
                if is_last:
                    raise EOFError from None
        raise EOFError

    def _answer(self, job: Job | GoldJob, bounds: Bounds, seconds: float) -> Done:
        """The outcome of a job within its time; otherwise TimeoutError."""
        self._line.send((job, bounds))
        deadline = time.monotonic() + seconds
        while self._line.poll(max(0.0, deadline - time.monotonic())):
            message = self._line.recv()
            if not isinstance(message, logging.LogRecord):
                return message
            if (log := logging.getLogger(message.name)).isEnabledFor(message.levelno):
                log.handle(message)
        raise TimeoutError

    def stop(self) -> None:
        """End it, whatever it is doing; a thread waiting for it gets a CancelledError."""
        self._stopped = True
        self._kill()

    def _start(self) -> None:
        if self._process:
            return
        self._line, theirs = Pipe()
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, "-c", _START, str(number), *sys.path]
            # In its own session, Ctrl-C does not reach it. It ends when we do, because the line is closed.
            self._process = subprocess.Popen(  # noqa: S603
                command,
                pass_fds=[number],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=os.environ | thread_variables(),
            )
        if self._stopped:  # meanwhile
            self._kill()
        self._line.recv()  # its libraries are loaded: the clock starts now

    def _kill(self) -> None:
        if self._process and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # forks too

    def end(self) -> None:
        if self._process:
            self._line.close()
            self._kill()
            self._process.wait()
            self._process = None


class Workers:
    """Grade rows, several at a time."""

    def __init__(self, count: int) -> None:
        self._all = [Worker() for _ in range(count)]
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._all:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(count)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Unfinished work is no longer wanted."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._all:
            worker.stop()
        self._threads.shutdown()
        for worker in self._all:
            worker.end()

    def grade(self, job: Job) -> "Future[CompetitionReport | Unjudged]":
        return self._threads.submit(self._grade, job)

    def _grade(self, job: Job) -> CompetitionReport | Unjudged:
        worker = self._idle.get()
        try:
            return worker.grade(job)
        except OSError as error:
            return dead_row(job, Verdict(GRADER_ERROR, reason=f"no process can be started: {reason_of(error)}"))
        finally:
            self._idle.put(worker)


def serve(descriptor: int) -> None:
    """In the worker process: fork for each row that arrives on the line, until it is closed."""
    line: Any = Connection(descriptor)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a cluster sends it to every process; ours decides
    with suppress(OSError):
        os.dup2(2, 1)  # output of a competition's code is not our result
    for name in _LOADED:
        import_module(name)
    _warm_up()
    with suppress(EOFError, ConnectionError):
        line.send("ready")
        while True:
            job, bounds = line.recv()
            line.send(_in_a_fork(job, bounds, line))


def _warm_up() -> None:
    """Do the libraries' first-use work once here: in every fork it would take a quarter of a small row's time."""
    from mlebench.kit import align

    tables = [read_table(io.BytesIO(b"id,x,y\na,0.5,0\nb,1.5,1\n")) for _ in range(2)]
    align(*tables, id="id", target=["x", "y"], values="numbers")


def _in_a_fork(job: Job | GoldJob, bounds: Bounds, line: Any) -> Done:
    """The outcome, or a verdict on how the fork ended; what it logs is passed on."""
    ours, theirs = Pipe(duplex=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads: a library has one, which sleeps
        child = os.fork()
    if child == 0:
        line.close()  # or the parent would not notice that our end is gone
        try:
            _confine(bounds)
            theirs.send(_with_log(job, bounds, theirs))
        finally:
            os._exit(0)
    theirs.close()
    with ours:
        while True:
            ready = wait([ours, line], None if bounds.memory is None else LOOK)
            if line in ready:  # nothing is sent while a row is graded: it was closed
                os.kill(child, signal.SIGKILL)
                raise EOFError
            if bounds.memory is not None and used_memory(child) > bounds.memory:
                os.kill(child, signal.SIGKILL)
                return _reaped(child, Exceeded("memory"))
            if not ready:
                continue
            try:
                message = ours.recv()
            except (EOFError, OSError):
                return _reaped(child)
            if not isinstance(message, logging.LogRecord):
                return _reaped(child, message)
            line.send(message)


def _confine(bounds: Bounds) -> None:
    """In a fork: the kernel ends it when its time is up, and before any other process when memory runs out."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if bounds.seconds is not None:
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        seconds = math.ceil(bounds.seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds if hard < 0 else min(seconds, hard), hard))


def _reaped(child: int, outcome: Any = None) -> Done:
    """Wait for a fork to end; without an outcome, say how it ended."""
    _, status, usage = os.wait4(child, 0)
    if outcome is None:
        code = os.waitstatus_to_exitcode(status)
        outcome = Exceeded("time") if code == -signal.SIGXCPU else Verdict(GRADER_ERROR, reason=_cause(code))
    return Done(outcome, usage.ru_utime + usage.ru_stime, bytes_of_peak(usage))


def _with_log(job: Job | GoldJob, bounds: Bounds, line: Any) -> Any:
    log = logging.getLogger("mlebench")
    log.addHandler(_ToLine(line))
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        return job.work()
    except MemoryError:
        # If the system gives what is allowed, more than that was asked for.
        beyond = bounds.memory is not None and attainable_memory() >= bounds.memory
        return Exceeded("memory") if beyond else Verdict(GRADER_ERROR, reason=OUT_OF_MEMORY)
    except BaseException as error:
        return Verdict(GRADER_ERROR, reason=f"{type(error).__name__}: {error}")


class _ToLine(QueueHandler):
    """Forwards log records as a queue handler would, as text."""

    queue: Any

    def enqueue(self, record: logging.LogRecord) -> None:
        self.queue.send(record)


def _cause(code: int) -> str:
    if code >= 0:
        return f"the grader ended its process with exit code {code}"
    name = signal.Signals(-code).name
    return f"the grader's process was killed by {name}" + f"; {MEMORY_SHORT}" * (-code == 9)


def _sha256(job: Job) -> str | None:
    try:
        with open_untrusted(Path(job.path), job.limits.size) as file, HashedStream(file, job.limits.size) as stream:
            return stream.sha256()
    except (UntrustedFileError, PrerequisiteError, OSError):
        return None


def _stalled(allowed: Allowance) -> str:
    return (
        f"grading did not end within {allowed.wall_seconds:g} s, and took less than {allowed.seconds:g} s of CPU time: "
        f"this machine is too busy, or the grader waits for something"
    )
