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
RANG = pytest.StashKey[bool]()
AGAIN = 30.0  # seconds between further alarms, for a test that hangs while it cleans up after the first


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
            item.stash[RANG] = True
            try:
                fail(number, frame)
            except pytest.fail.Exception as failure:
                raise TimedOut(failure.msg) from None

        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, settings.timeout or 0, AGAIN)
    return is_set


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test fails even if something has swallowed the exception: event loops and finalizers do."""
    report = yield
    rang, item.stash[RANG] = item.stash.get(RANG, False), False
    if rang and report.passed:
        report.outcome, report.longrepr = "failed", f"Timeout in {item.nodeid}: its exception was swallowed"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    if settings := item.stash.get(SETTINGS, None):
        item.config.hook.pytest_timeout_set_timer(item=item, settings=settings)
    return (yield)
