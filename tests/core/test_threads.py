"""Our own processes start numeric libraries with one thread; the agent's programs decide for themselves."""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from support.waiting import wait_until

from mlebench.core.workers import thread_variables
from mlebench.grade.worker import Worker
from mlebench.validate.apart import Checker, CheckLimits


def _threads(pid: int) -> int:
    """How many threads compute: the one of Arrow's allocator sleeps."""
    names = [(task / "comm").read_text().strip() for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(name != "jemalloc_bg_thd" for name in names)


def _environment(pid: int) -> dict[str, str]:
    entries = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)


@contextlib.contextmanager
def _grader() -> Iterator[int]:
    worker = Worker()
    try:
        worker._start()  # returns when its libraries are loaded
        assert worker._process
        yield worker._process.pid
    finally:
        worker.end()


@contextlib.contextmanager
def _validator() -> Iterator[int]:
    checker = Checker(CheckLimits())
    try:
        checker.start()
        assert checker._process
        pid = checker._process.pid
        maps = Path(f"/proc/{pid}/maps")
        wait_until(lambda: "pandas/_libs" in maps.read_text(), "numpy, and what needs it, is loaded")
        yield pid
    finally:
        checker.close()


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one CPU means one thread anyway")
@pytest.mark.parametrize("start", [_grader, _validator])
def test_a_process_of_ours_computes_in_one_thread(
    start: Callable[[], AbstractContextManager[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in thread_variables():
        monkeypatch.delenv(name, raising=False)
    with start() as pid:
        assert _threads(pid) == 1


def test_what_the_user_has_set_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in thread_variables():
        monkeypatch.delenv(name, raising=False)
    assert set(thread_variables().values()) == {"1"}
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    assert thread_variables()["MKL_NUM_THREADS"] == "3"
    assert thread_variables()["OPENBLAS_NUM_THREADS"] == "1"
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert thread_variables()["MKL_NUM_THREADS"] == "3"
    with _grader() as pid:
        assert _environment(pid)["OPENBLAS_NUM_THREADS"] == "2", "the general one is meant for all"
