"""What tells a runner to stop: signals, and the end of the process that started it.

In a plain process, the agent could have sent a signal.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
PARENT_VARIABLE = "MLEBENCH_PARENT_FD"  # a pipe that closes when the process that started us ends, or
STARTER = "starter"  # to watch our parent process instead


@contextmanager
def on_stop_signal(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` for each of these signals. Outside the main thread, Python allows no handlers: none is set there."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: act()) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stop_signals_blocked() -> Iterator[None]:
    """Keep these signals from this thread, and from threads started meanwhile: they wait for `next_sender`.

    Every thread has to block them, or one that does not would get them.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def next_sender() -> int | None:
    """The process that sent the next waiting signal; 0 if it is outside our process namespace, None if none waits."""
    received = signal.sigtimedwait(STOP_SIGNALS, 0)
    return received.si_pid if received else None


def parent_pipe() -> int | None:
    """A descriptor that becomes readable when the process that started us ends; None if nobody asked for that."""
    number = os.environ.get(PARENT_VARIABLE)
    if number == STARTER:
        return os.pidfd_open(os.getppid())
    return int(number) if number else None
