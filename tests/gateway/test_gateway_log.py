"""What a gateway leaves: messages in runner.log, of which an agent can cause many; a trace; no folder."""

import io
import socket
from pathlib import Path

import pytest
from support.endpoints import Endpoint, access_to

from mlebench.core.service_process import MESSAGES, BoundedStream
from mlebench.gateway.proxy import GatewayProxy
from mlebench.gateway.trace import Trace


def test_an_agent_cannot_fill_the_log(server: Endpoint, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each malformed request is worth a message of uvicorn."""
    (tmp_path / "logs").mkdir()
    most = 2 * MESSAGES // len("gateway: Invalid HTTP request received.")
    with GatewayProxy("token", access_to(server), tmp_path, 100) as proxy:
        for _ in range(most):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(proxy.socket))
                connection.sendall(b"nonsense\r\n\r\n")
                connection.recv(100)
        assert not proxy.has_died
    told = capfd.readouterr().err
    assert 0.9 * MESSAGES < len(told) < 1.1 * MESSAGES
    assert told.endswith("further messages are left out\n")


def test_a_bounded_stream_says_once_that_it_is_full() -> None:
    stream = io.StringIO()
    bounded = BoundedStream(stream, 10, "gateway")
    for text in ("12345", "1234567", "more", "more"):
        assert bounded.write(text) == len(text)
    assert stream.getvalue() == "1234512345\ngateway: further messages are left out\n"


def test_a_trace_that_the_disk_does_not_take_is_begun_later(tmp_path: Path) -> None:
    """A gateway that ended because of it would cost the agent its start."""
    trace, call = Trace(tmp_path / "absent" / "calls.jsonl"), {"request": None, "answer": None}
    trace.write(call)
    (tmp_path / "absent").mkdir()
    trace.write(call)
    trace.close()
    assert trace.left_out == 1
    assert (tmp_path / "absent" / "calls.jsonl").read_text().count("\n") == 1


def test_what_a_plain_process_leaves_beside_the_socket_keeps_no_run_from_ending(
    server: Endpoint, tmp_path: Path
) -> None:
    with GatewayProxy("token", access_to(server), tmp_path, 100) as proxy:
        (proxy.folder / "more").mkdir()
        (proxy.folder / "more" / "file").touch()
    assert not proxy.folder.exists()
