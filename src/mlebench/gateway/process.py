"""The process of one run's gateway: `python -m mlebench.gateway.process`.

Its standard input carries a line of JSON, with the key, and stays open as long as the run lasts. When that closes, the
process ends. It listens on a socket that it inherits.
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
from pathlib import Path
from typing import Any, TextIO

import msgspec

from mlebench.core.serve import ServerLimits, server_of
from mlebench.gateway.access import ModelAccess
from mlebench.gateway.server import Gateway
from mlebench.records.group import ModelFacts

LIMITS = ServerLimits(connections=256, idle_seconds=30)
INTERVAL = 0.5  # between writes of the counts
MEMORY = 8 << 30
MESSAGES = 64 << 10  # characters on standard error; an agent can cause as many as it likes


class BoundedStream(io.TextIOBase):
    """Passes on a limited number of characters, and says so when they are used up."""

    def __init__(self, stream: TextIO, most: int):
        self._stream, self._left = stream, most

    def write(self, text: str) -> int:
        if self._left > 0:
            self._stream.write(text[: self._left])
            if len(text) > self._left:
                self._stream.write("\ngateway: further messages are left out\n")
            self._left -= len(text)
            self._stream.flush()
        return len(text)


async def _run(spec: dict[str, Any], descriptor: int) -> None:
    gateway = Gateway(
        ModelAccess.from_facts(msgspec.convert(spec["access"], ModelFacts)),
        token=spec["token"],
        key=spec["key"],
        use=Path(spec["use"]),
        trace=Path(spec["trace"]),
        seconds=spec["seconds"],
    )
    server = server_of(gateway, LIMITS)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _listen, ended)
    with socket.socket(fileno=descriptor) as listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not ended.is_set() and not serving.done():
            gateway.write()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), INTERVAL)
        await gateway.close()
        server.should_exit = server.force_exit = True
        await serving


def _listen(ended: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        ended.set()


def main() -> None:
    sys.stderr = BoundedStream(sys.stderr, MESSAGES)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="gateway: %(message)s")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    line = bytearray()
    while not line.endswith(b"\n"):  # not a byte more: the loop reads the rest
        data = os.read(sys.stdin.fileno(), 1)
        if not data:
            return
        line += data
    asyncio.run(_run(json.loads(line), int(sys.argv[1])))


if __name__ == "__main__":
    main()
