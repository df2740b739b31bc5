"""The inside of a service's process.

Its standard input carries a line of JSON, which may hold a key, and stays open as long as the run lasts. When that
closes, the process ends. It listens on a socket that it inherits.
"""

import asyncio
import contextlib
import io
import json
import logging
import os
import resource
import socket
import sys
from collections.abc import Callable
from typing import Any, Protocol, TextIO

from mlebench.core.serve import ServerLimits, server_of

LIMITS = ServerLimits(connections=256, idle_seconds=30)
INTERVAL = 0.5  # between writes of the records
MEMORY = 8 << 30
MESSAGES = 64 << 10  # characters on standard error; an agent can cause as many as it likes


class Application(Protocol):
    """An ASGI application that keeps records."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...

    def write(self) -> None:
        """Put the records on disk, if they have changed."""

    async def close(self) -> None:
        """End what is in progress, and record it."""


class BoundedStream(io.TextIOBase):
    """Passes on a limited number of characters, and says so when they are used up."""

    def __init__(self, stream: TextIO, most: int, name: str):
        self._stream, self._left, self._name = stream, most, name

    def write(self, text: str) -> int:
        if self._left > 0:
            self._stream.write(text[: self._left])
            if len(text) > self._left:
                self._stream.write(f"\n{self._name}: further messages are left out\n")
            self._left -= len(text)
            self._stream.flush()
        return len(text)


def run_service(name: str, make: Callable[[dict[str, Any]], Application]) -> None:
    """Answer with the application that `make` returns for what the runner says, until the runner has had enough."""
    sys.stderr = BoundedStream(sys.stderr, MESSAGES, name)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format=f"{name}: %(message)s")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    line = bytearray()
    while not line.endswith(b"\n"):  # not a byte more: the loop reads the rest
        data = os.read(sys.stdin.fileno(), 1)
        if not data:
            return
        line += data
    asyncio.run(_run(make, json.loads(line), int(sys.argv[1])))


async def _run(make: Callable[[dict[str, Any]], Application], spec: dict[str, Any], descriptor: int) -> None:
    application = make(spec)
    server = server_of(application, LIMITS)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _listen, ended)
    with socket.socket(fileno=descriptor) as listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not ended.is_set() and not serving.done():
            application.write()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), INTERVAL)
        await application.close()
        server.should_exit = server.force_exit = True
        await serving


def _listen(ended: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        ended.set()
