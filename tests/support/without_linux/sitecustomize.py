"""Imported by every Python that has this folder on its path: takes away what Linux alone has, as on a Mac."""

import builtins
import ctypes
import errno
import os
import socket
import sys
import sysconfig

CALLS = ("O_PATH", "memfd_create", "pidfd_open", "sched_getaffinity", "sched_setaffinity", "setresgid", "setresuid")
FOLDERS = ("/proc", "/sys", "/dev/shm")


def _is_linux_only(path: object) -> bool:
    text = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
    return text in FOLDERS or text.startswith(tuple(f"{folder}/" for folder in FOLDERS))


def _forbid(module: object, name: str) -> None:
    function = getattr(module, name)

    def guarded(path=".", *arguments, **options):  # pyright: ignore[reportMissingParameterType] those of any function
        if _is_linux_only(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return function(path, *arguments, **options)

    setattr(module, name, guarded)


class _Library(ctypes.CDLL):
    def __getattr__(self, name: str):
        if name == "prctl":
            raise AttributeError(name)
        return super().__getattr__(name)


sysconfig.get_config_vars()  # read from a file that is named after the system: now or never
sys.platform = "darwin"
for call in CALLS:
    delattr(os, call)
for constant in ("MSG_CMSG_CLOEXEC", "SOCK_SEQPACKET"):
    delattr(socket, constant)
for function in ("access", "chdir", "listdir", "lstat", "open", "readlink", "scandir", "stat"):
    _forbid(os, function)
_forbid(builtins, "open")
ctypes.CDLL = _Library
