"""The relay: what it forbids, and that a proxy opens again once there are processes to spare."""

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench.sandbox import relay

IO_URING = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
made = libc.syscall(425, 1, ctypes.create_string_buffer(120))
print("open" if made >= 0 else os.strerror(ctypes.get_errno()))
"""


@pytest.mark.parametrize("options", [[], [relay.NO_USER_NAMESPACES]])
def test_no_io_uring_which_would_make_sockets_past_the_filter(options: list[str]) -> None:
    command = [sys.executable, relay.__file__, *options, "--", sys.executable, "-c", IO_URING]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "Function not implemented"


@contextlib.contextmanager
def proxy(path: Path) -> Iterator[int]:
    """A relay to a socket that greets; gives its port."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def greet() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with server.accept()[0] as client:
                        client.sendall(b"hello")

        threading.Thread(target=greet, daemon=True).start()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        relay.serve(port, str(path))
        yield port


def test_a_proxy_stays_open_when_processes_run_out_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start, refusals = threading.Thread.start, iter(range(70))  # more than are carried at once

    def start_unless_refused(thread: threading.Thread) -> None:
        if thread.name.endswith("(carry)") and next(refusals, None) is not None:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(relay, "PAUSE", 0)
    with proxy(tmp_path / "proxy.sock") as port:
        monkeypatch.setattr(threading.Thread, "start", start_unless_refused)
        heard = set()
        for _ in range(71):
            with socket.create_connection(("127.0.0.1", port), timeout=120) as client, contextlib.suppress(OSError):
                heard.add(client.recv(5))
        assert heard == {b"", b"hello"}, "a refused connection is closed, and later ones are carried"
