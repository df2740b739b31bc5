"""A test that hangs fails alone: pytest with our own settings, on tests that hang."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

TESTS = Path(__file__).parent
SETTINGS = TESTS.parent / "pyproject.toml"
HANGING = """
import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def hanging_teardown():
    yield
    time.sleep(600)


@pytest.fixture(scope="module")
def hanging_setup():
    time.sleep(600)


def test_call():
    time.sleep(600)


@given(st.integers())
def test_property(number):
    time.sleep(600)


def test_setup(hanging_setup):
    pass


def test_teardown(hanging_teardown):
    pass


def test_call_and_teardown(hanging_teardown):
    time.sleep(600)


def test_swallowed():
    async def wait():
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        asyncio.get_running_loop().call_soon(time.sleep, 600)
        await asyncio.sleep(0)

    asyncio.run(wait())


@pytest.mark.timeout(200)
def test_own_timeout():
    time.sleep(1.5)
"""


def test_every_test_has_a_timeout() -> None:
    options = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    assert (options["timeout"], options["timeout_method"]) == (300, "signal")
    assert "timeout_func_only" not in options, "fixtures may hang, too"


def test_a_test_that_hangs_fails_alone(tmp_path: Path) -> None:
    (tmp_path / "test_hanging.py").write_text(HANGING)
    command = [sys.executable, "-m", "pytest", "-c", SETTINGS, "--rootdir", tmp_path, "--confcutdir", tmp_path]
    command += ["-p", "no:cacheprovider", "--numprocesses", "1", "--timeout", "1", "-rpfE", tmp_path]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | {"COLUMNS": "200"}
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    outcomes = dict(re.findall(r"^(?:FAILED|ERROR) test_hanging.py::(\w+) - (.*)", done.stdout, re.MULTILINE))
    hanging = {"test_call", "test_property", "test_setup", "test_teardown", "test_call_and_teardown", "test_swallowed"}
    assert outcomes.keys() == hanging, done.stdout + done.stderr
    assert outcomes.pop("test_swallowed").endswith("its exception was swallowed")
    assert all(outcome.startswith("support.timeouts.TimedOut: Timeout (>1.0s)") for outcome in outcomes.values()), (
        outcomes
    )
    assert "PASSED test_hanging.py::test_own_timeout" in done.stdout, "the others continue"
    assert re.search(r"^test_hanging.py:\d+: TimedOut", done.stdout, re.MULTILINE), "the stack shows where a test hangs"
    assert "crashed" not in done.stdout, "the process has gone on"
