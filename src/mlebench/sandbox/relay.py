"""The inside of a proxy: listens on the sandbox's own loopback and passes bytes on to a socket that leads out.

Usage: relay.py [--parent-pipe] [--no-user-namespaces] [PORT=SOCKET ...] -- PROGRAM ...

Runs before the agent's program and ends with its exit code. It is the first process of every sandbox that isolates:
everything else in it is the agent's. Standard library only: it is the one file of the benchmark that every sandbox
holds.
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
import time
from typing import NamedTuple

AT_ONCE = threading.BoundedSemaphore(64)
PAUSE = 0.1  # seconds
INSTRUCTION = "HBBI"  # of a seccomp program: what to do, how many to skip if true and if false, an operand


class SystemCalls(NamedTuple):
    """seccomp's name for a machine, and the machine's numbers for system calls."""

    architecture: int
    socket: int
    clone: int
    unshare: int
    clone3: int
    add_key: int
    request_key: int
    keyctl: int


MACHINES = {
    "x86_64": SystemCalls(0xC000003E, 41, 56, 272, 435, 248, 249, 250),
    "aarch64": SystemCalls(0xC00000B7, 198, 220, 97, 435, 217, 218, 219),
}
PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 4, 38, 22, 2
AF_VSOCK = 40
CLONE_NEWUSER = 0x10000000
IO_URING_SETUP = 425  # on every machine
NO_USER_NAMESPACES = "--no-user-namespaces"
PARENT_PIPE = "--parent-pipe"
CUT = 137  # as if killed; the exit code of our client on the host is another


def forbid(*, namespaces: bool) -> None:
    """Install `system_call_filter` for us and everything we start."""
    program = system_call_filter(namespaces=namespaces)
    if not program:
        if namespaces:
            sys.exit(f"the relay has no system call filter for {os.uname().machine}")
        return
    code = ctypes.create_string_buffer(program)
    filter = struct.pack("HP", len(program) // struct.calcsize(INSTRUCTION), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def system_call_filter(*, namespaces: bool) -> bytes:
    """A seccomp program against system calls that no namespace stops; empty for a machine whose numbers we do not know.

    Sockets of the kind AF_VSOCK reach the hypervisor. An io_uring makes sockets, and much else, past every filter. Keys
    belong to a user, so a sandbox without root could describe, link and read those of the user who started it. In its
    own user namespace, a program has every capability.
    Programs of another architecture, whose calls have other numbers, can make no system calls at all.
    """
    machine = MACHINES.get(os.uname().machine)
    if machine is None or sys.platform != "linux":
        return b""
    load, equal, any_of, at_least, end = 0x20, 0x15, 0x45, 0x35, 0x06
    not_permitted, unknown, allowed = 0x00050001, 0x00050026, 0x7FFF0000
    program = [
        (load, 0, 0, 4),  # the architecture
        (equal, 0, 14, machine.architecture),
        (load, 0, 0, 0),  # the call
        (at_least, 12, 0, 0x40000000),  # x32, the other numbering of x86_64
        (equal, 9, 0, machine.socket),
        (equal, 12, 0, IO_URING_SETUP),
        (equal, 9, 0, machine.add_key),
        (equal, 8, 0, machine.request_key),
        (equal, 7, 0, machine.keyctl),
        (equal, 7, 0, machine.clone3),
        (equal, 1, 0, machine.clone),
        (equal, 0, 7, machine.unshare),
        (load, 0, 0, 16),  # its first argument, the flags
        (any_of, 2, 5, CLONE_NEWUSER if namespaces else 0),
        (load, 0, 0, 16),  # its first argument, the family
        (equal, 0, 3, AF_VSOCK),
        (end, 0, 0, not_permitted),
        (end, 0, 0, unknown if namespaces else allowed),  # clone3, whose flags are invisible: callers then use `clone`
        (end, 0, 0, unknown),  # io_uring: callers then use plain calls
        (end, 0, 0, allowed),
    ]
    return b"".join(struct.pack(INSTRUCTION, *line) for line in program)


def serve(port: int, path: str) -> None:
    server = socket.create_server(("127.0.0.1", port), backlog=64)

    def accept() -> None:
        while True:
            AT_ONCE.acquire()
            try:
                carry_apart(server.accept()[0], path)
            except (OSError, RuntimeError):  # the program has used up descriptors or processes; that may pass
                AT_ONCE.release()
                time.sleep(PAUSE)

    threading.Thread(target=accept, daemon=True).start()


def carry_apart(client: socket.socket, path: str) -> None:
    try:
        threading.Thread(target=carry, args=(client, path), daemon=True).start()
    except RuntimeError:
        client.close()  # the caller sees it, and may try again
        raise


def carry(client: socket.socket, path: str) -> None:
    """Pass bytes on in both directions until both have ended."""
    try:
        with client, socket.socket(socket.AF_UNIX) as proxy, contextlib.suppress(OSError):
            proxy.connect(path)
            back = threading.Thread(target=pump, args=(proxy, client), daemon=True)
            back.start()
            pump(client, proxy)
            back.join()
    finally:
        AT_ONCE.release()


def pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def watch_parent_pipe() -> None:
    """End when our input does: its other end is the supervisor's, on the host. We are the container's first process, so
    everything in it ends with us. The program cannot keep our input open, because it may not look into this process.
    """

    def wait() -> None:
        while os.read(0, 1 << 16):
            pass
        os._exit(CUT)

    threading.Thread(target=wait, daemon=True).start()


def main(arguments: list[str]) -> int:
    end = arguments.index("--")
    options = arguments[:end]
    forbid(namespaces=NO_USER_NAMESPACES in options)  # first: a thread without the filter could be traced
    if os.getpid() == 1:
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)  # nobody may trace us or look into this process
    if PARENT_PIPE in options:
        watch_parent_pipe()
    for proxy in (word for word in options if not word.startswith("--")):
        port, path = proxy.split("=", 1)
        serve(int(port), path)
    # In a process group of its own, so that signals to its group do not reach us; `process_group` needs Python 3.11.
    program = subprocess.Popen(arguments[end + 1 :], stdin=subprocess.DEVNULL, preexec_fn=os.setpgrp)  # noqa: S603
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(program.pid, signal.SIGTERM))
    pid, status = os.wait()
    while pid != program.pid:  # a process whose parent has ended
        pid, status = os.wait()
    code = program.returncode = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(main(sys.argv[1:]))  # threads of open connections must not delay the end
