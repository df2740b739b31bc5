"""Waiting for other processes and threads, on a machine that may be busy. Nothing here waits without end."""

import os
import select
import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

SECONDS = 120.0  # less than the timeout of a test, so that the message says what did not happen

Value = TypeVar("Value")


def wait_until(
    condition: Callable[[], Value | None],
    what: str,
    seconds: float = SECONDS,
    *,
    process: "subprocess.Popen[Any] | None" = None,
    details: Callable[[], object] = str,
) -> Value:
    """Return the condition's value once it is true. `what` completes the sentence "Waited until …".

    Fails if it is not true in time, or if the process that should make it true has ended.
    """
    deadline = time.monotonic() + seconds
    while True:
        # Before the condition is checked: what the process did last counts, however long we were stopped meanwhile.
        exit_code = process.poll() if process else None
        is_late = time.monotonic() > deadline
        if value := condition():
            return value
        if exit_code is not None:
            pytest.fail(f"The process ended with {exit_code} before {what}. {details()}")
        if is_late:
            pytest.fail(f"Waited {seconds:g} s in vain until {what}. {details()}")
        time.sleep(0.02)


def read_terminal(
    descriptor: int, what: str, seconds: float = SECONDS, *, heard: Callable[[bytes], None] = lambda _: None
) -> bytes:
    """All bytes from our end of a pseudo-terminal, until nobody has the other end; closes it.

    `heard` is called with everything read so far after each read.
    """
    shown, deadline = b"", time.monotonic() + seconds
    try:
        while True:
            if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                pytest.fail(f"Waited {seconds:g} s in vain until {what}. The terminal shows {shown[-2000:]!r}")
            try:
                data = os.read(descriptor, 1 << 16)
            except OSError:  # how Linux reports that the other end is closed
                return shown
            if not data:
                return shown
            shown += data
            heard(shown)
    finally:
        os.close(descriptor)
