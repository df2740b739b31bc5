"""Completes pytest-timeout: a test that hangs fails once, alone, and the process that ran it goes on.

Its own exception is one that Hypothesis takes for a finding: it would try the example again, without a timeout, and
hang. And it stops the clock with the first failure, so that a fixture could hang while it cleans up.
"""

import signal
from collections.abc import Generator
from types import FrameType

import pytest
from pytest_timeout import Settings

SETTINGS = pytest.StashKey[Settings]()


class TimedOut(BaseException):
    """Passes through every `except Exception`, and through Hypothesis."""


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Settings) -> Generator[None, object, object]:
    is_set = yield
    item.stash[SETTINGS] = settings
    fail = signal.getsignal(signal.SIGALRM)
    if callable(fail):

        def ring(number: int, frame: FrameType | None) -> None:
            __tracebackhide__ = True
            try:
                fail(number, frame)
            except pytest.fail.Exception as failure:
                raise TimedOut(failure.msg) from None

        signal.signal(signal.SIGALRM, ring)
    return is_set


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    if settings := item.stash.get(SETTINGS, None):
        item.config.hook.pytest_timeout_set_timer(item=item, settings=settings)
    return (yield)
