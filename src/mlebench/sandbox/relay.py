"""The inside of a door: listens on the sandbox's own loopback and passes bytes on to a socket that leads out.

Usage: relay.py PORT=SOCKET ... -- PROGRAM ...

Runs before the agent's program and ends with its exit code. Standard library only: it is the one file of the benchmark
that a sandbox holds.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading

AT_ONCE = threading.BoundedSemaphore(64)


def serve(port: int, path: str) -> None:
    server = socket.create_server(("127.0.0.1", port), backlog=64)

    def accept() -> None:
        while True:
            client, _ = server.accept()
            AT_ONCE.acquire()
            threading.Thread(target=carry, args=(client, path), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def carry(client: socket.socket, path: str) -> None:
    """Pass on what both sides say until both have ended."""
    try:
        with client, socket.socket(socket.AF_UNIX) as door, contextlib.suppress(OSError):
            door.connect(path)
            back = threading.Thread(target=pump, args=(door, client), daemon=True)
            back.start()
            pump(client, door)
            back.join()
    finally:
        AT_ONCE.release()


def pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def main(arguments: list[str]) -> int:
    end = arguments.index("--")
    for door in arguments[:end]:
        port, path = door.split("=", 1)
        serve(int(port), path)
    program = subprocess.Popen(arguments[end + 1 :])  # noqa: S603
    signal.signal(signal.SIGTERM, lambda *_: program.terminate())
    code = program.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(main(sys.argv[1:]))  # threads of connections that are still open do not hold the run up
