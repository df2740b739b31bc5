"""What the gateway adds to a request: many streams at once, with and without it, to the same endpoint on loopback.

    python benchmarks/gateway.py [--streams 50] [--requests 400] [--events 20]

Endpoint, gateway and client are separate processes; the endpoint sends an event every few milliseconds, as a model
does. Requests start spread over time, like those of agents. `added` is the median time of all requests through the
gateway, less the median without it: until the first event, and until the end.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from mlebench.gateway.access import plan_access
from mlebench.gateway.proxy import GatewayProxy

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
PAUSE = 0.02  # seconds between two events
EVENT = {"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "some words "}}]}
END = {**EVENT, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
USAGE = {**EVENT, "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 20}}


async def endpoint(events: int) -> None:
    """A server that does almost nothing, so that the rest can be measured."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                await reader.readexactly(int(length.partition(b":")[2]))
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                )
                for _ in range(events):
                    writer.write(_chunk(EVENT))
                    await asyncio.sleep(PAUSE)
                writer.write(_chunk(END) + _chunk(USAGE) + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def _chunk(event: dict) -> bytes:
    data = f"data: {json.dumps(event)}\n\n".encode()
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


@dataclass
class Place:
    """Where requests go."""

    name: str
    token: str
    port: int | None = None
    socket: Path | None = None
    first: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self.socket:
            return await asyncio.open_unix_connection(self.socket)
        return await asyncio.open_connection("127.0.0.1", self.port)


async def measure(place: Place, streams: int, requests: int) -> None:
    """Record seconds to the first event and to the end of each request, with `streams` in progress at any time."""
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "word " * 2000}]})
    head = f"host: x\r\nauthorization: Bearer {place.token}\r\ncontent-length: {len(body)}"
    request = f"POST /v1/chat/completions HTTP/1.1\r\n{head}\r\n\r\n{body}".encode()
    left = iter(range(requests))

    async def one() -> None:
        reader, writer = await place.connect()
        await asyncio.sleep(random.uniform(0, 0.5))
        is_new = True  # its first request also opens a connection at the other end
        for _ in left:
            begun = time.perf_counter()
            writer.write(request)
            await reader.readuntil(b"data: ")
            seen = time.perf_counter() - begun
            await reader.readuntil(b"\r\n0\r\n\r\n")
            if not is_new:
                place.first.append(seen)
                place.whole.append(time.perf_counter() - begun)
            is_new = False
        writer.close()

    await asyncio.gather(*(one() for _ in range(streams)))


async def compare(options: argparse.Namespace, port: int) -> None:
    access = plan_access(["m"], {}, endpoint=f"http://127.0.0.1:{port}/v1")
    with tempfile.TemporaryDirectory() as folder:
        with GatewayProxy("benchmark", access, Path(folder), 3600) as proxy:
            warm, direct = Place("warm", proxy.key_of_run, socket=proxy.socket), Place("direct", "", port=port)
            through = Place("gateway", proxy.key_of_run, socket=proxy.socket)
            await measure(warm, options.streams, options.streams)
            for _ in range(options.rounds):  # in turns: the machine may be busier at times
                await measure(direct, options.streams, options.requests)
                await measure(through, options.streams, options.requests)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)  # the gateway's: the endpoint is still running
        use = json.loads((Path(folder) / "model.json").read_text())
    print(f"{options.streams} streams at once, {options.events} events each; load {os.getloadavg()[0]:.1f}")
    for what in ("first", "whole"):
        without, with_it = (statistics.median(getattr(place, what)) * 1000 for place in (direct, through))
        words = "until the first event" if what == "first" else "until the end"
        print(f"{words}: direct {without:.2f} ms, gateway {with_it:.2f} ms, added {with_it - without:.2f} ms")
    cpu = (ended.ru_utime + ended.ru_stime) / use["calls"] * 1000
    print(f"{use['calls']} calls, {use['failed']} failed; {cpu:.2f} ms of CPU time each, with the start of the process")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--events", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--endpoint", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.endpoint:
        asyncio.run(endpoint(options.events))
        return
    command = [sys.executable, __file__, "--endpoint", "--events", str(options.events)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            asyncio.run(compare(options, int(server.stdout.readline() if server.stdout else 0)))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
