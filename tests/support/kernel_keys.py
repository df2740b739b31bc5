"""Keys in the kernel's keyrings of the user who runs the tests. No sandbox may see or use them."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

# The numbers of `add_key` and `keyctl`.
ADD_KEY, KEYCTL = {"x86_64": (248, 250), "aarch64": (217, 219)}.get(os.uname().machine, (-1, -1))
GET_KEYRING, JOIN_SESSION, UNLINK, SET_TIMEOUT = 0, 1, 9, 15
SESSION, USER = -3, -4  # keyrings
SECONDS = 600  # a key of a killed test expires


def add_to_new_session(name: bytes) -> None:
    """A new session keyring with a key, which processes that this one starts would inherit."""
    libc = ctypes.CDLL(None)
    libc.syscall(KEYCTL, JOIN_SESSION, None)
    libc.syscall(ADD_KEY, b"user", name, name, len(name), SESSION)


@contextmanager
def added_to_user_keyring(name: bytes) -> Iterator[list[int]]:
    """The numbers of a key, which every process of this user can use, and of its keyring; empty without such keys."""
    libc = ctypes.CDLL(None)
    keyring = libc.syscall(KEYCTL, GET_KEYRING, USER, 1)
    key = libc.syscall(ADD_KEY, b"user", name, name, len(name), USER)
    if key > 0:
        libc.syscall(KEYCTL, SET_TIMEOUT, key, SECONDS)
    try:
        yield [key, keyring] if key > 0 and keyring > 0 else []
    finally:
        if key > 0:
            libc.syscall(KEYCTL, UNLINK, key, USER)
