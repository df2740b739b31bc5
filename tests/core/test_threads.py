"""Our own processes start numeric libraries with one thread; the agent's programs decide for themselves."""

import os
from pathlib import Path

import pytest

from mlebench.core.isolate import call, thread_variables


def _threads(_: None) -> int:
    """How many threads compute in the fork server, with numpy loaded; that of Arrow's allocator sleeps."""
    parent = Path("/proc") / str(os.getppid())
    assert "pandas/_libs" in (parent / "maps").read_text()
    names = [(task / "comm").read_text().strip() for task in (parent / "task").iterdir()]
    return sum(name != "jemalloc_bg_thd" for name in names)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one CPU means one thread anyway")
@pytest.mark.parametrize("preload", ["mlebench.grade.preload", "mlebench.validate.format_check"])
def test_a_process_of_ours_computes_in_one_thread(preload: str) -> None:
    assert call(_threads, None, preload=[preload, "pandas"]) == 1


def test_what_the_user_has_set_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in thread_variables():
        monkeypatch.delenv(name, raising=False)
    assert set(thread_variables().values()) == {"1"}
    monkeypatch.setenv("MKL_NUM_THREADS", "3")
    assert thread_variables()["MKL_NUM_THREADS"] == "3"
    assert thread_variables()["OPENBLAS_NUM_THREADS"] == "1"
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert thread_variables()["MKL_NUM_THREADS"] == "3"
    assert call(_variable, "OPENBLAS_NUM_THREADS") == "2", "the general one is meant for all"


def _variable(name: str) -> str:
    return os.environ[name]
