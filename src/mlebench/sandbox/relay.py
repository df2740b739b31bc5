"""The inside of a door: listens on the sandbox's own loopback and passes bytes on to a socket that leads out.

Usage: relay.py PORT=SOCKET ... -- PROGRAM ...

Runs before the agent's program and ends with its exit code. Standard library only: it is the one file of the benchmark
that a sandbox holds.
"""

import contextlib
import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
import threading

AT_ONCE = threading.BoundedSemaphore(64)
MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}  # how seccomp calls it; its number of `socket`
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
AF_VSOCK = 40


def forbid_vsock() -> None:
    """No network namespace holds sockets of this kind back, and they reach the hypervisor.

    Forbidden to us and to all that we start, by a filter of system calls. Programs of another architecture, for which
    calls have other numbers, can make none at all.
    """
    machine = MACHINES.get(os.uname().machine)
    if machine is None or sys.platform != "linux":
        return
    architecture, call = machine
    load, equal, at_least, end = 0x20, 0x15, 0x35, 0x06
    program = [
        (load, 0, 0, 4),  # the architecture
        (equal, 0, 5, architecture),
        (load, 0, 0, 0),  # the call
        (at_least, 3, 0, 0x40000000),  # x32, the other numbering of x86_64
        (equal, 0, 3, call),
        (load, 0, 0, 16),  # its first argument, the family
        (equal, 0, 1, AF_VSOCK),
        (end, 0, 0, 0x00050001),  # "operation not permitted"
        (end, 0, 0, 0x7FFF0000),  # allowed
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    filter = struct.pack("HP", len(program), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


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
    forbid_vsock()
    program = subprocess.Popen(arguments[end + 1 :])  # noqa: S603
    signal.signal(signal.SIGTERM, lambda *_: program.terminate())
    code = program.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(main(sys.argv[1:]))  # threads of connections that are still open do not hold the run up
