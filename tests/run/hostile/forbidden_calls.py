"""Makes system calls that the filter forbids, itself and through every process that it can trace; prints what happened.

Standard library only. Another process is made to call by setting its registers, which differ between machines.
"""

import ctypes
import errno
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long] * 4
LIBC.ptrace.restype = LIBC.syscall.restype = ctypes.c_long
STEP, GET_REGISTERS, SET_REGISTERS, ATTACH, DETACH = 9, 12, 13, 16, 17
WALL = 0x40000000
NUMBERS = {"x86_64": (41, 425), "aarch64": (198, 425)}[os.uname().machine]
CALLS = {"AF_VSOCK": (NUMBERS[0], 40, 1, 0), "io_uring": (NUMBERS[1], 1, 0, 0)}
NAMES = "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss"


class Registers(ctypes.Structure):
    """Of x86_64."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in (*NAMES.split(), *(f"segment {number}" for number in range(6)))]


def name_of(number: int) -> str:
    return errno.errorcode.get(number, str(number))


def own_call(*words: int) -> str:
    return "done" if LIBC.syscall(*map(ctypes.c_long, words)) >= 0 else name_of(ctypes.get_errno())


def trace(request: int, pid: int, data: Any = None) -> None:
    if LIBC.ptrace(request, pid, 0, ctypes.addressof(data) if data else 0) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def call_through(pid: int, *words: int) -> str:
    """Let a process that waits in a system call make another one; it is attached to, and stopped."""
    before, registers = Registers(), Registers()
    trace(GET_REGISTERS, pid, before)
    trace(GET_REGISTERS, pid, registers)
    registers.rax, registers.rdi, registers.rsi, registers.rdx = words
    registers.rip -= 2  # back to the instruction that made the call
    registers.orig_rax = 2**64 - 1  # and that one is not to be repeated
    trace(SET_REGISTERS, pid, registers)
    trace(STEP, pid)
    os.waitpid(pid, WALL)
    trace(GET_REGISTERS, pid, registers)
    trace(SET_REGISTERS, pid, before)
    result = ctypes.c_longlong(registers.rax).value
    return "done" if result >= 0 else name_of(-result)


def attempts(pid: int) -> dict[str, Any]:
    if pid == os.getpid():
        return {"traced": "itself", **{name: own_call(*words) for name, words in CALLS.items()}}
    try:
        trace(ATTACH, pid)
    except OSError as error:
        return {"traced": name_of(error.errno or 0)}
    os.waitpid(pid, WALL)
    calls = {name: call_through(pid, *words) for name, words in CALLS.items()} if NUMBERS[0] == 41 else {}
    trace(DETACH, pid)
    return {"traced": "done", **calls}


def state_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def main() -> None:
    child = subprocess.Popen(["sleep", "100"])
    while not state_of(child.pid)["State"].startswith("S"):
        time.sleep(0.01)
    pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208
    results = {pid: {"filter": state_of(pid)["Seccomp"], **attempts(pid)} for pid in pids}
    child.kill()
    print(json.dumps(results))


main()
