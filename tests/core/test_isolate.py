"""Calls in a process of their own: results, limits, and what is left of them."""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest
from support.waiting import wait_until

from mlebench.core import isolate, memory
from mlebench.core.isolate import Calls, IsolatedCallError, call, notify
from mlebench.core.processes import process_start


def _double(number: int) -> int:
    return 2 * number


def _hang(folder: Path) -> None:
    """Write down its process and one that it starts, and never end."""
    child = subprocess.Popen(["sleep", "3600"])
    (folder / "part").write_text(f"{os.getpid()} {child.pid}")
    (folder / "part").rename(folder / "pids")
    threading.Event().wait()


def _pids(folder: Path) -> list[int]:
    wait_until((folder / "pids").exists, "the call has begun")
    return [int(word) for word in (folder / "pids").read_text().split()]


def _burn(_: None) -> None:
    while True:
        pass


def _grow(_: None) -> None:
    held = []
    while True:
        held.append(bytearray(os.urandom(1024)) * 8192)


def _ask(size: int) -> int:
    return len(bytearray(size))


def _surroundings(_: None) -> tuple[str, str, str | None]:
    score = Path("/proc/self/oom_score_adj").read_text().strip()
    return str(Path.cwd()), score, os.environ.get("MLEBENCH_TEST")


def _exit(how: str) -> None:
    if how == "exit":
        os._exit(3)
    elif how == "sys.exit":
        sys.exit(3)
    os.kill(os.getpid(), signal.SIGKILL)


class _OddError(Exception):
    def __init__(self, one: str, other: str):
        super().__init__(f"{one} and {other}")


def _fail(error: Exception) -> None:
    raise error


def _fail_oddly(_: None) -> None:
    raise _OddError("one", "other")


def _say(words: list[str]) -> None:
    for word in words:
        logging.getLogger("mlebench.test").info("%s", word)
        notify(word.upper())


def _read(_: None, *files: int) -> list[bytes]:
    return [os.pread(number, 100, 0) for number in files]


def _kill_parent(mark: Path) -> str:
    """The first time, kill or stop the fork server."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getppid(), signal.SIGKILL)
        threading.Event().wait()
    return "done"


def _stop_parent(_: None) -> int:
    os.kill(os.getppid(), signal.SIGSTOP)
    return os.getppid()


def test_a_call_has_a_result_and_its_process_leaves_nothing(tmp_path: Path) -> None:
    assert call(_double, 21) == 42
    assert len(call(_ask_bytes, 5_000_000)) == 5_000_000
    assert call(_surroundings, None)[1] == "1000", "the kernel ends it first when memory runs out"


def _ask_bytes(size: int) -> bytes:
    return bytes(size)


def test_a_call_sees_what_its_caller_sees_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call(_double, 1)  # the fork server is there
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLEBENCH_TEST", "now")
    (tmp_path / "own_module.py").write_text("def name(_): return __name__")
    monkeypatch.syspath_prepend(tmp_path)
    import own_module  # pyright: ignore[reportMissingImports] it was written just now

    folder, _, variable = call(_surroundings, None)
    assert (folder, variable) == (str(tmp_path.resolve()), "now")
    assert call(own_module.name, None) == "own_module"


def test_a_call_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(IsolatedCallError, match=r"it took longer than 0\.5 s") as caught:
        call(_hang, tmp_path, seconds=0.5)
    assert caught.value.limit == "seconds"
    assert isolate._current
    assert _children(isolate._current.process.pid) == []


def test_time_on_the_cpu_is_limited() -> None:
    with pytest.raises(IsolatedCallError, match="it took more than 1 s of CPU time") as caught:
        call(_burn, None, cpu_seconds=1)
    assert caught.value.limit == "cpu_seconds"


@pytest.mark.parametrize(("function", "argument"), [(_grow, None), (_ask, 1 << 60)])
def test_memory_is_limited(function: Callable[[Any], Any], argument: Any) -> None:
    with pytest.raises(IsolatedCallError, match="it took more than 200 MiB of memory") as caught:
        call(function, argument, memory=200 << 20)
    assert caught.value.limit == "memory"


def test_a_limit_below_what_every_process_uses_is_always_exceeded() -> None:
    with pytest.raises(IsolatedCallError) as caught:
        call(_double, 1, memory=1 << 20)
    assert caught.value.limit == "memory"


def test_nothing_may_use_more_than_the_control_group_has(tmp_path: Path) -> None:
    """A second program, whose fork server takes a folder for the control groups."""
    (tmp_path / "memory.max").write_text(str(150 << 20))
    program = f"""
import sys
from pathlib import Path
from mlebench.core import isolate
sys.path.insert(0, {str(Path(__file__).parent)!r})
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
isolate._START = isolate._START.replace("; serve", "; from mlebench.core import memory; from pathlib import Path; "
    "memory._CGROUPS = Path({str(tmp_path)!r}); serve", 1)
import test_isolate
try:
    isolate.call(test_isolate._grow, None, memory=1 << 40)
except isolate.IsolatedCallError as error:
    print(error.limit, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "machine there was not enough memory on this machine\n", done.stderr


def test_where_memory_is_short_below_the_limit_the_machine_is_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(IsolatedCallError, match="not enough memory on this machine") as caught:
        call(_ask, 1 << 60, memory=1 << 60)
    assert caught.value.limit == "machine"
    with pytest.raises(IsolatedCallError) as caught:
        call(_ask, 1 << 60)
    assert caught.value.limit == "machine"
    assert memory.group_memory() >= memory.total_memory()


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("exit", "its process ended with exit code 3"),
        ("sys.exit", "SystemExit: 3"),
        ("kill", "its process was killed by SIGKILL; most likely there was not enough memory"),
    ],
)
def test_a_function_that_ends_its_process_does_not_end_the_caller(how: str, reason: str) -> None:
    with pytest.raises(IsolatedCallError) as caught:
        call(_exit, how)
    assert (str(caught.value), caught.value.limit) == (reason, None)


def test_exceptions_travel() -> None:
    with pytest.raises(KeyError, match="nobody") as caught:
        call(_fail, KeyError("nobody"))
    assert "in _fail" in caught.value.__notes__[0]
    with pytest.raises(IsolatedCallError, match="_OddError: one and other"):  # it cannot be made again
        call(_fail_oddly, None)


def test_records_of_the_log_and_messages_arrive_in_order(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []
    words = [str(number) for number in range(100)]
    with caplog.at_level(logging.INFO, "mlebench"):
        call(_say, words, listener=seen.append)
    assert [record.message for record in caplog.records if record.name == "mlebench.test"] == words
    assert seen == words
    caplog.clear()
    with caplog.at_level(logging.WARNING, "mlebench"):
        call(_say, words)
    assert not caplog.records


def test_open_files_are_passed_on(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"first")
    (tmp_path / "two").write_bytes(b"second")
    with (tmp_path / "one").open() as one, (tmp_path / "two").open() as two:
        assert call(_read, None, files=[one.fileno(), two.fileno()]) == [b"first", b"second"]


def test_many_calls_at_once_each_get_their_own_result() -> None:
    with Calls(8) as calls:
        waiting = [calls.submit(call, _double, number) for number in range(40)]
        assert [future.result() for future in waiting] == [2 * number for number in range(40)]


def test_calls_in_progress_end_with_their_block(tmp_path: Path) -> None:
    with Calls(1) as calls:
        waiting = [calls.submit(call, _hang, tmp_path) for _ in range(3)]
        pids = _pids(tmp_path)
    assert all(isinstance(future.exception(), CancelledError) for future in waiting[:1])
    assert all(future.cancelled() for future in waiting[1:])
    wait_until(lambda: not any(map(process_start, pids)), "the call and what it had started have ended")
    assert call(_double, 3) == 6, "other calls go on"


def test_the_process_that_stands_by_is_replaced_if_it_is_killed_or_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call(_kill_parent, tmp_path / "mark") == "done"
    monkeypatch.setattr(isolate, "PATIENCE", 0.5)
    stopped = call(_stop_parent, None)
    monkeypatch.undo()
    assert call(_double, 4) == 8
    assert process_start(stopped) is None


ENDLESS = """
import sys
from pathlib import Path
from mlebench.core.isolate import call
import test_isolate
call(test_isolate._hang, Path(sys.argv[1]))
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_the_caller(end: signal.Signals, tmp_path: Path) -> None:
    paths = os.pathsep.join(str(path) for path in Path(__file__).parents[:2])
    environment = os.environ | {"PYTHONPATH": paths}
    command = [sys.executable, "-c", ENDLESS, tmp_path]
    caller = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        pids = [*_pids(tmp_path), *_children(caller.pid)]
        assert len(pids) == 3
        caller.send_signal(end)
        caller.wait(60)
    finally:
        caller.kill()
        caller.wait()
    wait_until(lambda: not any(map(process_start, pids)), "all processes have ended")


def test_if_the_process_that_stands_by_is_killed_so_is_the_call(tmp_path: Path) -> None:
    with Calls(1) as calls:
        waiting = calls.submit(call, _hang, tmp_path)
        pid, child = _pids(tmp_path)
        (tmp_path / "pids").unlink()
        assert isolate._current
        os.kill(isolate._current.process.pid, signal.SIGKILL)
        wait_until(lambda: process_start(pid) is None, "the call's process has ended")
        again = _pids(tmp_path)
        assert again[0] != pid
        os.kill(isolate._current.process.pid, signal.SIGKILL)
        with pytest.raises(IsolatedCallError, match="the fork server was killed"):
            waiting.result()
    for left in (child, again[1]):
        os.kill(left, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
