"""Signals that tell a runner to stop, and who sent them: in a plain process, the agent could have."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


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
