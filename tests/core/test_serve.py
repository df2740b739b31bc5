"""The server under all of our applications: what clients cannot do to it, and where it listens."""

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from support.waiting import wait_until

from mlebench.core.errors import PrerequisiteError
from mlebench.core.serve import LOOPBACK, ServerLimits, listening, server_of

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def _app(_: Any, __: Any, send: Callable[..., Any]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@contextmanager
def _served(limits: ServerLimits) -> Iterator[Callable[[], socket.socket]]:
    """A way to connect to a server in a thread."""
    with listening(LOOPBACK, [0], None) as sockets:
        server = server_of(_app, limits)
        thread = threading.Thread(target=server.run, kwargs={"sockets": sockets}, daemon=True)
        address = sockets[0].getsockname()
        thread.start()
        wait_until(lambda: server.started, "the server has started")
        yield lambda: socket.create_connection(address, timeout=120)
        server.should_exit = True
        thread.join()


def _answer(client: socket.socket) -> bytes:
    client.sendall(REQUEST)
    content = b""
    while not content.endswith(b"hello") and (part := client.recv(1 << 16)):
        content += part
    return content


def _is_cut(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_client_that_asks_for_nothing_is_cut_and_one_that_has_asked_stays() -> None:
    with _served(ServerLimits(header_seconds=0.5)) as connect, connect() as silent, connect() as slow:
        with suppress(OSError):  # it may have been cut by now
            slow.sendall(REQUEST[:10])
        assert _is_cut(silent)
        assert _is_cut(slow)
    with _served(ServerLimits(header_seconds=10, idle_seconds=120)) as connect, connect() as one, connect() as silent:
        assert b" 200 " in _answer(one)
        assert _is_cut(silent), "the time is up for both"
        assert b" 200 " in _answer(one)


def test_connections_beyond_the_limit_are_cut() -> None:
    with _served(ServerLimits(connections=3, header_seconds=120, idle_seconds=120)) as connect:
        clients = [connect() for _ in range(3)]
        assert all(b" 200 " in _answer(client) for client in clients)
        with connect() as surplus:
            assert _is_cut(surplus)
        clients.pop().close()

        def is_served() -> bool:
            with connect() as later:
                try:
                    return b" 200 " in _answer(later)
                except OSError:
                    return False

        wait_until(is_served, "there is room again")
        for client in clients:
            client.close()


def test_answers_do_not_say_what_serves_them() -> None:
    with _served(ServerLimits()) as connect, connect() as client:
        names = {line.partition(b":")[0].lower() for line in _answer(client).split(b"\r\n")[1:]}
        assert names & {b"server", b"date"} == set()


def test_an_address_that_is_taken_is_said_in_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), listening(LOOPBACK, [0], tmp_path / "door") as sockets:
        port = sockets[0].getsockname()[1]
        assert f"listening on http://127.0.0.1:{port}" in caplog.text
        with pytest.raises(PrerequisiteError, match=rf"cannot listen on 127\.0\.0\.1:{port}: .*; choose another with"):
            listening(LOOPBACK, [port], None).__enter__()
        with pytest.raises(PrerequisiteError, match=r"cannot listen on .*door"):
            listening(LOOPBACK, [], tmp_path / "door").__enter__()
        assert (tmp_path / "door").is_socket(), "it is still in use"
    assert not (tmp_path / "door").exists()
