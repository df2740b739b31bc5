"""A process that grades each submission in a fork of itself.

Whatever a competition's code does (ends its process, crashes, uses up the memory), it only affects the fork. The
process that forks has the libraries loaded and no threads of its own. It is neither a fork of ours, which may have
threads, nor one of multiprocessing's, which would run a caller's script again.
"""

import io
import logging
import os
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
from typing import Any, Self

from mlebench.grade.one import Verdict
from mlebench.grade.row import Job, Unjudged, dead_row, grade_row
from mlebench.scoring import CompetitionReport
from mlebench.validate.reading import read_table

logger = logging.getLogger(__name__)

MEMORY_CHECK = 0.05  # seconds between two checks of a fork's memory
MEMORY_SHORT = "most likely there was not enough memory"
# So that no fork has to load them.
_LOADED = (
    "mlebench.data.preload",
    "mlebench.metrics",
    "mlebench.competitions",
    "pyarrow.pandas_compat",
    "pyarrow.vendored.version",
    "yaml",
)
_PAGE = os.sysconf("SC_PAGE_SIZE")
_START = "import sys; sys.path[:] = sys.argv[2:]; from mlebench.grade.worker import serve; serve(int(sys.argv[1]))"


class Worker:
    """Grades rows one after another; starts when needed, and again after it was killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._line: Any = None
        self._stopped = False

    def grade(self, job: Job) -> CompetitionReport | Unjudged:
        try:
            self._start()
            outcome = self._answer(job)
        except TimeoutError:
            self.end()
            outcome = Verdict("limit", reason=f"grading took longer than {job.limits.seconds:g} s")
        except (EOFError, OSError):
            self.end()
            outcome = Verdict("grader_error", reason=f"the process that grades was killed; {MEMORY_SHORT}")
        if self._stopped:
            raise CancelledError
        if isinstance(outcome, Verdict):
            logger.error("%s: %s", job.path, outcome.reason)
            return dead_row(job, outcome)
        return outcome

    def _answer(self, job: Job) -> CompetitionReport | Unjudged | Verdict:
        """The outcome of a row within its time; otherwise TimeoutError."""
        self._line.send(job)
        deadline = time.monotonic() + job.limits.seconds
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
                command, pass_fds=[number], stdin=subprocess.DEVNULL, start_new_session=True
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
        finally:
            self._idle.put(worker)


def serve(descriptor: int) -> None:
    """In the worker process: fork for each row that arrives on the line, until it is closed."""
    line: Any = Connection(descriptor)
    with suppress(OSError):
        os.dup2(2, 1)  # output of a competition's code is not our result
    for name in _LOADED:
        import_module(name)
    _warm_up()
    with suppress(EOFError, ConnectionError):
        line.send("ready")
        while True:
            line.send(_in_a_fork(line.recv(), line))


def _warm_up() -> None:
    """Do the libraries' first-use work once here: in every fork it would take a quarter of a small row's time."""
    from mlebench.kit import align

    tables = [read_table(io.BytesIO(b"id,x,y\na,0.5,0\nb,1.5,1\n")) for _ in range(2)]
    align(*tables, id="id", target=["x", "y"], values="numbers")


def _in_a_fork(job: Job, line: Any) -> Any:
    """The outcome, or a verdict on how the fork ended; what it logs is passed on."""
    ours, theirs = Pipe(duplex=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads: a library has one, which sleeps
        child = os.fork()
    if child == 0:
        line.close()  # or the parent would not notice that our end is gone
        try:
            theirs.send(_with_log(job, theirs))
        finally:
            os._exit(0)
    theirs.close()
    with ours:
        while True:
            ready = wait([ours, line], None if job.limits.memory is None else MEMORY_CHECK)
            if line in ready:  # nothing is sent while a row is graded: it was closed
                os.kill(child, signal.SIGKILL)
                raise EOFError
            if job.limits.memory is not None and _memory(child) > job.limits.memory:
                _end(child)
                return Verdict("limit", reason=f"grading took more than {job.limits.memory} bytes of memory")
            if not ready:
                continue
            try:
                message = ours.recv()
            except (EOFError, OSError):
                return Verdict("grader_error", reason=_cause(os.waitpid(child, 0)[1]))
            if not isinstance(message, logging.LogRecord):
                os.waitpid(child, 0)
                return message
            line.send(message)


def _end(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _memory(process: int) -> int:
    """Bytes of memory that a process uses now; 0 if unknown."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    except OSError:
        return 0


def _with_log(job: Job, line: Any) -> CompetitionReport | Unjudged | Verdict:
    log = logging.getLogger("mlebench")
    log.addHandler(_ToLine(line))
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        return grade_row(job)
    except BaseException as error:
        return Verdict("grader_error", reason=f"{type(error).__name__}: {error}")


class _ToLine(QueueHandler):
    """Forwards log records as a queue handler would, as text."""

    queue: Any

    def enqueue(self, record: logging.LogRecord) -> None:
        self.queue.send(record)


def _cause(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"the grader ended its process with exit code {code}"
    name = signal.Signals(-code).name
    return f"the grader's process was killed by {name}" + f"; {MEMORY_SHORT}" * (-code == 9)
