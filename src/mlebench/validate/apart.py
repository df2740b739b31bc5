"""A check in its own process, with limits: a submission may make pandas hang or eat all memory.

A process that has imported everything a check needs stands by. It takes requests over a socket and forks for each
check, so that a check starts in milliseconds. A submission comes as a file descriptor: it has no name to open, guess or
forget.
"""

import asyncio
import ctypes
import importlib
import json
import logging
import math
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mlebench.core.errors import PrerequisiteError
from mlebench.core.memory import total_memory
from mlebench.core.workers import thread_variables
from mlebench.registry import Competition, registry

logger = logging.getLogger(__name__)

LONGEST_REQUEST = 1 << 20  # bytes
LONGEST_MESSAGE = 4_000  # characters
PR_SET_PDEATHSIG = 1  # of Linux's prctl
NOT_CHECKED = "The submission could not be checked."


class Answer(NamedTuple):
    """What a client is told: an HTTP status, and a JSON object."""

    status: int
    body: dict[str, Any]


def verdict(valid: bool, message: str) -> Answer:
    return Answer(200, {"is_valid": valid, "result": message[:LONGEST_MESSAGE]})


def fault(status: int, error: str, details: str) -> Answer:
    """Clients read `details` whenever there is an `error`."""
    return Answer(status, {"error": error, "details": details[:LONGEST_MESSAGE]})


@dataclass(frozen=True)
class CheckLimits:
    """What one check may use."""

    seconds: int = 300
    memory: int = field(default_factory=lambda: total_memory() // 3)  # bytes


class Checker:
    """Talks to the standby process, which is started when first needed, and again if it dies."""

    def __init__(self, limits: CheckLimits):
        self.limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._door: socket.socket | None = None

    def start(self) -> socket.socket:
        if self._door and self._process and self._process.poll() is None:
            return self._door
        self.close()
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from mlebench.validate.apart import stand_by; stand_by()"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=os.environ
                | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}
                | thread_variables(),
            )
        return self._door

    def close(self) -> None:
        """End the standby process and any running checks."""
        if self._door and self._process:
            self._door.close()
            self._process.kill()
            self._process.wait()

    async def check(self, descriptor: int, competition: Competition) -> Answer:
        """Check the submission behind a file descriptor; however the check ends, there is an answer."""
        ours, theirs = socket.socketpair()
        with ours:
            ours.setblocking(False)
            with theirs:
                self._ask(pickle.dumps((competition, self.limits)), [descriptor, theirs.fileno()])
            try:
                async with asyncio.timeout(self.limits.seconds + 30):  # by then its own limit has ended a check
                    said = await _all_of(ours)
            except TimeoutError:
                said = b""
        return Answer(*json.loads(said)) if said else fault(500, NOT_CHECKED, _likely_reason(self.limits))

    def _ask(self, request: bytes, descriptors: list[int]) -> None:
        try:
            socket.send_fds(self.start(), [request], descriptors)
        except (BrokenPipeError, ConnectionResetError):  # it died just now
            self.close()
            socket.send_fds(self.start(), [request], descriptors)


async def _all_of(stream: socket.socket) -> bytes:
    loop, parts = asyncio.get_running_loop(), []
    while part := await loop.sock_recv(stream, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def _likely_reason(limits: CheckLimits) -> str:
    megabytes = limits.memory // 1_000_000
    return f"The check ended without a verdict; it may take {limits.seconds} seconds and {megabytes} MB of memory."


def stand_by() -> None:
    """The standby process: fork for each request on stdin, until its other end is closed."""
    for slow in ("mlebench.kit", "mlebench.metrics", "mlebench.validate.check"):
        importlib.import_module(slow)

    logging.basicConfig(format="[%(asctime)s] %(message)s", datefmt="%H:%M:%S")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for children
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server
    door = socket.socket(fileno=0)
    while True:
        request, descriptors, _, _ = socket.recv_fds(door, LONGEST_REQUEST, 2)
        if not request:
            return
        if os.fork() == 0:
            try:
                door.close()
                _answer(request, *descriptors)
            finally:
                os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)


def _answer(request: bytes, submission: int, reply: int) -> None:
    competition, limits = pickle.loads(request)  # noqa: S301 from the server, which made it itself
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # when the server ends, so do its checks
    signal.alarm(math.ceil(limits.seconds))  # ends this process, whatever it is busy with
    _limit_memory(limits.memory)
    registry.competition_dir(competition.id)  # so that its code can be imported, wherever it is
    with socket.socket(fileno=reply) as stream:
        stream.sendall(json.dumps(_checked(submission, competition, limits)).encode())


def _checked(submission: int, competition: Competition, limits: CheckLimits) -> Answer:
    from mlebench.validate.check import CheckFailedError, check_format

    try:
        with os.fdopen(submission, "rb") as stream:
            stream.seek(0)
            return verdict(*check_format(stream, competition))
    except CheckFailedError as error:
        if isinstance(error.__cause__, MemoryError):
            return fault(500, NOT_CHECKED, _likely_reason(limits))
        logger.exception("%s", error)
        return fault(500, "The validator failed.", str(error))
    except MemoryError:
        return fault(500, NOT_CHECKED, _likely_reason(limits))
    except PrerequisiteError as error:  # the text may name folders of this machine, which are not the client's business
        logger.error("%s", error)
        return fault(500, "The validator cannot work.", "The competition's public files are not complete.")


def _limit_memory(more: int) -> None:
    """Allow this many bytes beyond those in use."""
    with open("/proc/self/statm", encoding="ascii") as pages:  # noqa: PTH123
        in_use = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + more, in_use + more))
