"""Calls a function in a process of its own, within limits: whatever the function does, the caller lives on.

A fork server, which has libraries loaded and no threads of its own, forks for each call, so that a call starts in
milliseconds. It does what the caller might not live to do: it watches the memory of a call's process, and ends the
process with all that it has started. It is not a fork of ours, which may have threads, nor one of multiprocessing's,
which would run a caller's script again.

The two ways in which a process of ours ends with its parent, here and elsewhere (docs/decisions/0032):

- A program that we start holds an end of a socket or pipe, and reads from it. It ends when the other end is closed,
  which the kernel does when we end. So ends the fork server.
- A fork of a process without threads asks the kernel to kill it: `end_with_parent`. So does the process of a call.
"""

import atexit
import gc
import json
import logging
import math
import os
import pickle
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from logging.handlers import QueueHandler
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import IO, Any, Literal, NoReturn, TypeVar

from mlebench.core.memory import LOOK, attainable_memory, group_memory, used_memory
from mlebench.core.processes import end_with_parent

Result = TypeVar("Result")
Limit = Literal["seconds", "cpu_seconds", "memory", "machine"]

PATIENCE = 10.0  # seconds for the fork server to end a call; then it is replaced itself
MEMORY_SHORT = "most likely there was not enough memory"
THREADS = "OMP_NUM_THREADS"  # read by most libraries that have no variable of their own
# By default each of these starts a thread for every CPU when it is loaded, and some of them wait by spinning.
_LIBRARIES = ("OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "NUMEXPR_NUM", "VECLIB_MAXIMUM")
_START = "import sys; sys.path[:] = sys.argv[2:]; from mlebench.core.isolate import serve; serve(int(sys.argv[1]))"
_LONGEST_HEADER, _MOST_FILES = 1 << 16, 64
_LENGTH = struct.Struct("=I")  # of a header
_FORKED, _ENDED = struct.Struct("=i"), struct.Struct("=ii")  # an error number; what was exceeded, and the exit code
_EXCEEDED: tuple[Limit | None, ...] = (None, "memory", "machine")


class IsolatedCallError(Exception):
    """A call ended without a result; the message says why.

    `limit` names the one that was exceeded; it is `machine` where memory ran out below the limit.
    """

    def __init__(self, reason: str, limit: Limit | None = None):
        super().__init__(reason)
        self.limit = limit


def call(
    function: Callable[..., Result],
    argument: Any,
    *,
    seconds: float = math.inf,
    cpu_seconds: float = math.inf,
    memory: float = math.inf,
    files: Sequence[int] = (),
    preload: Sequence[str] = (),
    listener: Callable[[Any], None] | None = None,
) -> Result:
    """The result of `function(argument, *files)`, called in a separate process.

    The function must belong to a module, and it, the argument and the result must be picklable. What it raises is
    raised here, and what it logs is logged here; `listener` gets what it passes to `notify`. IsolatedCallError if it
    ends without a result; OSError if no process can be started; CancelledError if its `Calls` have ended.

    `seconds` are by the clock, from when the modules `preload` and the function's own are imported. `memory`, in bytes,
    is what the process uses in all, looked at twenty times a second; more than the control group has is never allowed.
    `files` are open descriptors, which the function gets as its own.
    """
    modules = [*preload, function.__module__]
    surroundings = [dict(os.environ | thread_variables()), sys.path, _working_folder()]
    content = pickle.dumps([modules, cpu_seconds, memory, *surroundings]) + pickle.dumps((function, argument))
    header = json.dumps([modules, memory]).encode()
    for _ in range(2):  # whoever has killed the fork server may be about to kill us, too
        try:
            kind, value = _attempt(header, content, files, seconds, listener)
        except _DiedError:
            continue
        if kind == "result":
            return value
        if kind == "raised":
            raise _raised(*value)
        limit, code = value
        if code == -signal.SIGXCPU and cpu_seconds < math.inf:
            limit = "cpu_seconds"
        reasons = {
            "seconds": f"it took longer than {seconds:g} s",
            "cpu_seconds": f"it took more than {cpu_seconds:g} s of CPU time",
            "memory": f"it took more than {memory / (1 << 20):.0f} MiB of memory",
            "machine": "there was not enough memory on this machine",
        }
        raise IsolatedCallError(reasons[limit] if limit else _cause(code), limit)
    raise IsolatedCallError(f"the fork server was killed; {MEMORY_SHORT}")


def notify(message: Any) -> None:
    """In a call: pass a message to the caller's `listener`."""
    _send("message", message)


def start(*preload: str) -> None:
    """Start the fork server, unless it is there, so that it imports these modules meanwhile."""
    with suppress(_DiedError):
        _fork_server().send(json.dumps([preload, math.inf]).encode(), [])


class Calls(ThreadPoolExecutor):
    """Threads that make calls. At the end of the block, calls still in progress end with a CancelledError."""

    def __init__(self, count: int):
        super().__init__(count, initializer=setattr, initargs=(_thread, "calls", self))
        self._lines: set[socket.socket] = set()
        self._change = threading.Lock()
        self.have_ended = False

    def __exit__(self, *_: object) -> None:
        self.shutdown(wait=False, cancel_futures=True)
        with self._change:
            self.have_ended = True
            for line in self._lines:
                _hang_up(line)
        self.shutdown()

    @contextmanager
    def including(self, line: socket.socket) -> Iterator[None]:
        """Register the line of a call while it is in progress."""
        with self._change:
            if self.have_ended:
                raise CancelledError
            self._lines.add(line)
        try:
            yield
        finally:
            with self._change:
                self._lines.discard(line)


def thread_variables() -> dict[str, str]:
    """For the environment of a process of ours that computes in one thread; what the user has set is left as it is."""
    general = os.environ.get(THREADS, "1")
    return {name: os.environ.get(name, general) for name in (THREADS, *(f"{name}_THREADS" for name in _LIBRARIES))}


# The caller's side


class _DiedError(Exception):
    """The fork server has died."""


class _ForkServer:
    """The fork server, seen from here."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(PATIENCE)
        self._lock = threading.Lock()
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-c", _START, str(theirs.fileno()), *sys.path],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C reaches all processes of a session; the caller decides
                env=os.environ | thread_variables(),
            )

    def send(self, header: bytes, descriptors: Sequence[int]) -> None:
        try:
            with self._lock:
                socket.send_fds(self._socket, [_LENGTH.pack(len(header))], descriptors)
                self._socket.sendall(header)
        except OSError as error:
            self.kill()
            raise _DiedError from error

    def end(self, line: socket.socket) -> tuple[Limit | None, int] | None:
        """End a call's process, if it has not ended, and what it has started; what it exceeded, and its exit code."""
        _hang_up(line)
        line.settimeout(PATIENCE)
        try:
            reply = line.recv(_ENDED.size)
        except OSError:
            reply = b""
        if not reply:
            self.kill()
            return None
        exceeded, code = _ENDED.unpack(reply)
        return _EXCEEDED[exceeded], code

    def kill(self) -> None:
        """End it; the kernel ends its forks."""
        self.process.kill()
        self.process.wait()
        with self._lock:
            self._socket.close()


_lock = threading.Lock()
_thread = threading.local()  # in a thread of `Calls`: those
_current: _ForkServer | None = None


def _fork_server() -> _ForkServer:
    global _current
    with _lock:
        if _current and _current.process.poll() is not None:
            _current.kill()
            _current = None
        _current = _current or _ForkServer()
        return _current


@atexit.register
def _stop() -> None:
    if _current:
        _current.kill()


def _forget() -> None:
    global _current, _lock
    _current, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)  # it belongs to the parent


def _attempt(
    header: bytes,
    content: bytes,
    files: Sequence[int],
    seconds: float,
    listener: Callable[[Any], None] | None,
) -> tuple[str, Any]:
    """A call's result, what it raised, or which limit it exceeded and with which code its process ended.

    The process has a pipe for what it sends; a line to the one that stands by says how it ended, and ends it.
    """
    server, calls = _fork_server(), getattr(_thread, "calls", None)
    results, theirs = Pipe(duplex=False)
    line, their_line = socket.socketpair()
    with results, line, theirs, their_line, calls.including(line) if calls else nullcontext():
        with _unnamed_file() as request:
            request.write(content)
            request.seek(0)
            server.send(header, [request.fileno(), theirs.fileno(), their_line.fileno(), *files])
        theirs.close()
        their_line.close()
        try:
            kind, value = _answer(results, line, seconds, listener)
        finally:
            ending = server.end(line)
    if kind == "ended" and calls and calls.have_ended:
        raise CancelledError
    if kind == "ended" and ending is None:
        raise _DiedError
    return kind, ending if kind == "ended" else value


def _unnamed_file() -> IO[bytes]:
    """A file in memory, which a full disk does not affect; on the disk where the system has no such files."""
    memfd_create = getattr(os, "memfd_create", None)
    return open(memfd_create("call"), "w+b") if memfd_create else tempfile.TemporaryFile()  # noqa: PTH123


def _working_folder() -> str:
    """A path of our working folder, which on Linux is valid even if the folder has been moved or deleted."""
    folder = f"/proc/{os.getpid()}/cwd"
    with suppress(OSError):
        return folder if os.path.lexists(folder) else str(Path.cwd())
    return ""


def _answer(
    results: Any, line: socket.socket, seconds: float, listener: Callable[[Any], None] | None
) -> tuple[str, Any]:
    """What the process of a call says, if it does so in time; what it logs is passed on."""
    started = line.recv(_FORKED.size)
    if not started:
        return "ended", None
    if number := _FORKED.unpack(started)[0]:
        raise OSError(number, os.strerror(number))
    deadline = time.monotonic() + seconds
    while results.poll(_seconds_left(deadline)):
        try:
            kind, value = results.recv()
        except (EOFError, OSError):
            if wait([line], _seconds_left(deadline)):
                return "ended", None
            break
        if kind == "log":
            if (log := logging.getLogger(value.name)).isEnabledFor(value.levelno):
                log.handle(value)
        elif kind != "message":
            return kind, value
        elif listener:
            listener(value)
    return "exceeded", ("seconds", 0)


def _seconds_left(deadline: float) -> float | None:
    return None if deadline == math.inf else max(0.0, deadline - time.monotonic())


def _hang_up(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_WR)


def _raised(pickled: bytes | None, text: str, trace: str) -> BaseException:
    error: BaseException = IsolatedCallError(text)
    if pickled is not None:
        with suppress(Exception):
            error = pickle.loads(pickled)  # noqa: S301 from our own code
    error.add_note(f"In a separate process:\n{trace}")
    return error


def _cause(code: int) -> str:
    if code >= 0:
        return f"its process ended with exit code {code}"
    return f"its process was killed by {signal.Signals(-code).name}" + f"; {MEMORY_SHORT}" * (code == -signal.SIGKILL)


# The fork server


@dataclass(eq=False)
class _Fork:
    """The process of a call."""

    pid: int
    line: socket.socket
    memory: float  # the most it may use
    limit: Limit  # what it exceeds with more
    pidfd: int | None  # readable once it has ended; None where the system has no such descriptors
    status: int | None = None  # once it has been waited for

    @property
    def is_watched(self) -> bool:
        """Whether it is to be looked at again and again, because no descriptor says what we want to know."""
        return self.pidfd is None or self.memory < math.inf

    @property
    def descriptors(self) -> list[int]:
        return [self.line.fileno(), *([] if self.pidfd is None else [self.pidfd])]

    def has_ended(self) -> bool:
        """Only where there is no `pidfd`: whether it has."""
        if self.pidfd is None and self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status is not None

    def close(self) -> None:
        self.line.close()
        if self.pidfd is not None:
            os.close(self.pidfd)


def serve(number: int) -> NoReturn:
    """In the fork server: fork for each call that arrives on a socket, until its other end is closed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a cluster sends it to every process; the caller decides
    with suppress(OSError):
        os.dup2(2, 1)  # what code prints is not the caller's output
    gc.disable()  # modules live forever: imports are faster, and forks share more of their memory
    requests, forks = socket.socket(fileno=number), list[_Fork]()
    while True:
        ends = [number, *(end for fork in forks for end in fork.descriptors)]
        ready, _, _ = select.select(ends, [], [], LOOK if any(fork.is_watched for fork in forks) else None)
        for fork in [*forks]:
            exceeded = fork.memory < math.inf and used_memory(fork.pid) > fork.memory
            if exceeded or not {*fork.descriptors}.isdisjoint(ready) or fork.has_ended():
                _end(fork, fork.limit if exceeded else None)
                forks.remove(fork)
        if number in ready:
            header, descriptors = _receive(requests)
            if not header:
                break
            modules, memory = json.loads(header)
            for name in modules:
                with suppress(Exception):  # a call will meet it, too, and say so
                    import_module(name)
            gc.freeze()
            if descriptors and (fork := _forked(memory, descriptors, [requests, *forks])):
                forks.append(fork)
    for fork in forks:
        _end(fork, None)
    sys.exit()


def _receive(requests: socket.socket) -> tuple[bytes, list[int]]:
    """The next header and its descriptors; no header if the other end is closed."""
    length, descriptors, _, _ = socket.recv_fds(requests, _LENGTH.size, _MOST_FILES)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    if len(length) < _LENGTH.size:
        return b"", descriptors
    return requests.recv(_LENGTH.unpack(length)[0], socket.MSG_WAITALL), descriptors


def _end(fork: _Fork, exceeded: Limit | None) -> None:
    """End the process of a call, and what it has started; say how it ended."""
    with suppress(ProcessLookupError, PermissionError):  # macOS forbids it where only a zombie is left
        os.killpg(fork.pid, signal.SIGKILL)
    status = os.waitpid(fork.pid, 0)[1] if fork.status is None else fork.status
    with suppress(OSError):
        fork.line.send(_ENDED.pack(_EXCEEDED.index(exceeded), os.waitstatus_to_exitcode(status)))
    fork.close()


def _forked(memory: float, descriptors: list[int], ours: Iterable[Any]) -> _Fork | None:
    """Start the process of a call; None if that fails."""
    request, results, line_number, *files = descriptors
    line, parent, room = socket.socket(fileno=line_number), os.getpid(), group_memory()
    pidfd_open = getattr(os, "pidfd_open", None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # about threads: a library has one, which sleeps
            pid = os.fork()
        if pid == 0:
            try:
                for inherited in (line, *ours):
                    inherited.close()
                _work(parent, request, results, files)
            finally:
                os._exit(0)
        with suppress(OSError):  # it has done so itself
            os.setpgid(pid, pid)
        with suppress(OSError):
            line.send(_FORKED.pack(0))
        bound = (memory, "memory") if memory == math.inf or memory <= room else (room, "machine")
        return _Fork(pid, line, *bound, pidfd_open(pid) if pidfd_open else None)
    except OSError as error:
        with line, suppress(OSError):
            line.send(_FORKED.pack(error.errno or -1))
        return None
    finally:
        for descriptor in (request, results, *files):
            os.close(descriptor)


# The process of a call

_results: Connection | None = None
_sending = threading.Lock()


def _work(parent: int, request: int, results: int, files: Sequence[int]) -> None:
    global _results
    _results = Connection(results, readable=False)
    os.setpgid(0, 0)  # so that what it starts can be ended with it
    end_with_parent(parent)
    gc.set_threshold(100_000, 20, 20)  # tables and records hold few cycles
    gc.enable()
    memory = math.inf
    try:
        with open(request, "rb") as stream:
            modules, cpu_seconds, memory, *surroundings = pickle.load(stream)  # noqa: S301 from the caller
            _adopt(*surroundings)
            _confine(cpu_seconds)
            if memory < used_memory(os.getpid()):
                raise MemoryError
            for name in modules:
                import_module(name)
            function, argument = pickle.load(stream)  # noqa: S301
        _send("result", function(argument, *files))
    except MemoryError:
        # If the system gives what is allowed, more than that was asked for.
        _send("exceeded", ("memory" if attainable_memory() >= memory else "machine", 0))
    except BaseException as error:
        _send("raised", (_pickled(error), f"{type(error).__name__}: {error}", traceback.format_exc()))


def _adopt(environment: dict[str, str], path: list[str], folder: str) -> None:
    """Take over what the caller has now; its log gets our records."""
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = path
    with suppress(OSError):
        os.chdir(folder)
    log = logging.getLogger("mlebench")
    log.addHandler(_ToCaller(None))  # pyright: ignore[reportArgumentType] there is no queue
    log.setLevel(logging.INFO)
    log.propagate = False


def _confine(cpu_seconds: float) -> None:
    """The kernel ends this process when its time is up, and before any other process when memory runs out."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if cpu_seconds < math.inf:
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        seconds = math.ceil(cpu_seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds if hard < 0 else min(seconds, hard), hard))


def _send(kind: str, value: Any) -> None:
    if _results:
        with _sending:  # threads share it
            _results.send((kind, value))


class _ToCaller(QueueHandler):
    """Passes log records on, with their text."""

    def enqueue(self, record: logging.LogRecord) -> None:
        _send("log", record)


def _pickled(error: BaseException) -> bytes | None:
    """An exception, if it can be sent; one that would end the caller, such as SystemExit, must not be raised there."""
    if isinstance(error, Exception):
        with suppress(Exception):
            pickled = pickle.dumps(error)
            if repr(pickle.loads(pickled)) == repr(error):  # noqa: S301
                return pickled
    return None
