"""A process that grades each submission in a fork of itself.

Whatever a competition's code does (ends its process, crashes, uses up the memory), it does to the fork alone. The
process that forks has the libraries loaded and no threads of its own. It is neither a fork of ours, which may have
threads, nor one of multiprocessing's, which would run a caller's script once more.
"""

import logging
import os
import signal
import subprocess
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from logging.handlers import QueueHandler
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Self

from mlebench.grade.row import Job, Unjudged, dead_row, grade_row
from mlebench.scoring import CompetitionReport

logger = logging.getLogger(__name__)

_START = "import sys; sys.path[:] = sys.argv[2:]; from mlebench.grade.worker import serve; serve(int(sys.argv[1]))"


class Worker:
    """Grades rows one after another; is started when it is needed, and again when it was killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._line: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def grade(self, job: Job) -> CompetitionReport | Unjudged:
        try:
            self._start()
            self._line.send(job)
            while isinstance(message := self._line.recv(), logging.LogRecord):
                if (log := logging.getLogger(message.name)).isEnabledFor(message.levelno):
                    log.handle(message)
        except (EOFError, OSError):
            self._end()
            message = "the process that grades was killed; most likely there was not enough memory"
        if isinstance(message, str):
            logger.error("%s: %s", job.path, message)
            return dead_row(job, message)
        return message

    def _start(self) -> None:
        if self._process:
            return
        self._line, theirs = Pipe()
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, "-c", _START, str(number), *sys.path]
            # In a session of its own, Ctrl-C does not reach it. It ends when we do: then the line is closed.
            self._process = subprocess.Popen(  # noqa: S603
                command, pass_fds=[number], stdin=subprocess.DEVNULL, start_new_session=True
            )

    def _end(self) -> None:
        if self._process:
            self._line.close()
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)  # forks too
            self._process.wait()
            self._process = None


def serve(descriptor: int) -> None:
    """In the process: fork for each row that comes along the line, until it is closed."""
    line: Any = Connection(descriptor)
    with suppress(OSError):
        os.dup2(2, 1)  # what a competition's code prints is no result of ours
    import_module("mlebench.data.preload")
    with suppress(EOFError, ConnectionError):
        while True:
            line.send(_in_a_fork(line.recv(), line))


def _in_a_fork(job: Job, line: Any) -> Any:
    """The outcome, or in words how the fork died; what it logs is passed on."""
    ours, theirs = Pipe(duplex=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: a library has one, which sleeps
        child = os.fork()
    if child == 0:
        line.close()  # or our end would not be missed
        try:
            theirs.send(_with_log(job, theirs))
        finally:
            os._exit(0)
    theirs.close()
    with ours:
        while True:
            if line in wait([ours, line]):  # nothing is sent while a row is graded: it was closed
                os.kill(child, signal.SIGKILL)
                raise EOFError
            try:
                message = ours.recv()
            except (EOFError, OSError):
                return _cause(os.waitpid(child, 0)[1])
            if not isinstance(message, logging.LogRecord):
                os.waitpid(child, 0)
                return message
            line.send(message)


def _with_log(job: Job, line: Any) -> CompetitionReport | Unjudged | str:
    log = logging.getLogger("mlebench")
    log.addHandler(_ToLine(line))
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        return grade_row(job)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


class _ToLine(QueueHandler):
    """Sends log records on, in the form in which a queue would get them: as text."""

    queue: Any

    def enqueue(self, record: logging.LogRecord) -> None:
        self.queue.send(record)


def _cause(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"the grader ended its process with exit code {code}"
    name = signal.Signals(-code).name
    return f"the grader's process was killed by {name}" + "; most likely there was not enough memory" * (-code == 9)
