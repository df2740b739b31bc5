"""What a gateway's calls may take together: an agent that sends too much, or too often, only hurts itself."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.endpoints import TOKEN, Call, Endpoint, NewFront, access_to, chunk, delta, say_hello
from support.waiting import wait_until

from mlebench.gateway.capacity import BYTE, CallQueue, MemoryPool, OverloadedError
from mlebench.gateway.proxy import GatewayProxy

CHAT = "/v1/chat/completions"
LISTS = b"[" + b",".join([b"[]"] * 9_300_000) + b"]"  # 28 MB
MANY = [[]] * 2_100_000  # more values than an answer may have


class Process:
    """A gateway in its own process, as a run has it."""

    def __init__(self, proxy: GatewayProxy):
        assert proxy._process
        self._proxy, self._pid = proxy, proxy._process.pid

    def post(self, messages: bytes) -> httpx2.Response:
        transport = httpx2.HTTPTransport(uds=str(self._proxy.socket))
        with httpx2.Client(transport=transport, timeout=120, headers={"x-api-key": self._proxy.key_of_run}) as client:
            return client.post(f"http://gateway{CHAT}", content=b'{"model": "m", "messages": %b}' % messages)

    @property
    def peak(self) -> int:
        status = Path(f"/proc/{self._pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


@pytest.fixture
def process(server: Endpoint, tmp_path: Path) -> Iterator[Process]:
    (tmp_path / "logs").mkdir()
    with GatewayProxy("token", access_to(server), tmp_path, 200) as proxy:
        yield Process(proxy)


def test_a_request_of_very_many_values_takes_little_memory(server: Endpoint, process: Process) -> None:
    answer = process.post(LISTS)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
    assert "more than 1000000 values" in answer.json()["error"]["message"]
    assert server.seen == []
    assert process.peak < 600_000_000


def test_several_large_requests_at_once_stay_within_a_bound(server: Endpoint, process: Process) -> None:
    """A single character makes each of a text's take four bytes. Some are refused while others are at the endpoint."""
    server.behave = lambda call: (server.hung.wait(200), say_hello(call))[1]
    messages = '["{}😀"]'.format("x" * 31_000_000).encode()
    with ThreadPoolExecutor(12) as threads:
        posts = [threads.submit(process.post, messages) for _ in range(12)]
        wait_until(lambda: len(server.seen) + sum(post.done() for post in posts) == 12, "all are sent or refused")
        server.hung.set()
        statuses = {post.result().status_code for post in posts}
    assert statuses == {200, 429}
    assert process.peak < 3_000_000_000


def small(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr("mlebench.gateway.server.MemoryPool", lambda: MemoryPool(most))


def test_requests_that_are_still_arriving_count(front: NewFront, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch, BYTE * 10_000)
    gate = front()
    with socket.create_connection(("127.0.0.1", gate.port)) as slow:
        head = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\nx-api-key: {TOKEN}\r\ncontent-length: 9990\r\n\r\n"
        slow.sendall(head.encode() + b" " * 9900)
        wait_until(lambda: gate.post().status_code == 429, "the slow one counts")
        assert gate.post().json()["error"]["type"] == "too_many_calls"
    wait_until(lambda: gate.post().status_code == 200, "it counts no more")
    assert gate.use["refusals"].keys() <= {"too_many_calls", "invalid_request_error"}


def stream_of(*events: Any) -> Callable[[Call], None]:
    return lambda call: call.stream(*events, chunk([delta(end=True)]), "[DONE]")


def test_an_answer_of_very_many_values_is_refused(server: Endpoint, front: NewFront) -> None:
    gate = front()
    server.behave = lambda call: call.answer({"choices": MANY})
    answer = gate.post()
    assert (answer.status_code, "more than 4000000 values" in answer.text) == (502, True)
    server.behave = stream_of(chunk([{"index": 0, "delta": {"x": MANY}}]))
    assert "more than 4000000 values" in gate.post(stream=True).text
    assert [line["answer"] for line in gate.trace] == [None, None]


def test_what_is_held_of_a_stream_is_bounded(
    server: Endpoint, front: NewFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch, 24 << 20)
    gate = front()
    server.behave = stream_of(*[chunk([{"index": 0, "delta": {"x": [[]] * 5000}}])] * 200)
    assert "does not fit" in gate.post(stream=True).text
    words = ["word "] * 20_000
    server.behave = stream_of(
        *(chunk([delta(word)], model="m", created=1, system_fingerprint="x" * 40) for word in words)
    )
    assert "does not fit" not in gate.post(stream=True).text
    assert gate.trace[-1]["error"] is None, "a long stream of which little is held is passed on"
    assert gate.trace[-1]["answer"]["choices"][0]["message"]["content"] == "".join(words)


@pytest.fixture
def hanging(server: Endpoint) -> Iterator[Endpoint]:
    """An endpoint that answers when told to."""
    server.behave = lambda call: (server.hung.wait(200), say_hello(call))[1]
    yield server
    server.hung.set()


def test_calls_wait_for_their_turn_and_too_many_are_refused(
    hanging: Endpoint, front: NewFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlebench.gateway.upstream.CallQueue", lambda: CallQueue(2, 1))
    gate = front()
    with ThreadPoolExecutor(6) as threads:
        posts = [threads.submit(gate.post) for _ in range(6)]
        wait_until(lambda: sum(post.done() for post in posts) == 3, "three are refused")
        assert len(hanging.seen) == 2
        hanging.hung.set()
        statuses = sorted(post.result().status_code for post in posts)
    assert statuses == [200] * 3 + [429] * 3
    assert gate.use["refusals"] == {"too_many_calls": 3}


def test_an_endpoint_that_is_overrun_gets_fewer_calls_at_once() -> None:
    async def at_once(turns: CallQueue) -> int:
        most = running = 0

        async def call() -> None:
            nonlocal most, running
            async with turns.turn():
                running += 1
                most = max(most, running)
                await asyncio.sleep(0)
                running -= 1

        await asyncio.gather(*(call() for _ in range(20)))
        return most

    async def try_it() -> list[int]:
        turns, counts = CallQueue(8), []
        for changes in ([], [turns.refused], [turns.refused] * 9, [turns.answered] * 2, [turns.answered] * 99):
            for change in changes:
                change()
            counts.append(await at_once(turns))
        return counts

    assert asyncio.run(try_it()) == [8, 4, 1, 3, 8]


def test_a_call_that_is_given_up_while_it_waits_leaves_its_place() -> None:
    async def try_it() -> None:
        turns = CallQueue(1, 1)
        async with turns.turn():
            waiting = asyncio.create_task(turns.turn().__aenter__())
            await asyncio.sleep(0)
            with pytest.raises(OverloadedError):
                await turns.turn().__aenter__()
            waiting.cancel()
            await asyncio.wait([waiting])
        async with turns.turn():
            pass

    asyncio.run(try_it())
