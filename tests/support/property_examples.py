"""Which examples hypothesis tries in property tests: always the same, so that a change gets one verdict everywhere."""

import hashlib
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis.internal.conjecture import providers
from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.internal.constants_ast import Constants

# None if hypothesis has renamed it: a test says so.
FIND_LOCAL_CONSTANTS = getattr(providers, "_get_local_constants", None)


def ignore_local_constants() -> None:
    """Keep hypothesis from drawing constants out of our modules, whichever are imported by then.

    `derandomize` alone does not fix the examples: the tests that a process has run before decide what is imported, and
    the speed of the other processes decides which tests those are. Hypothesis has no setting for it.
    """
    providers._get_local_constants = Constants


def seed_by_name(item: pytest.Item) -> None:
    """Let a test's name and parameters decide its examples.

    Hypothesis does so itself, except if a fixture has the parameters: the first one that a process tries then decides
    for the others too.
    """
    test = getattr(getattr(item, "obj", None), "hypothesis", None)
    if test is not None and hasattr(item, "callspec"):
        test.inner_test._hypothesis_internal_add_digest = name_of(item).encode()


def name_of(item: pytest.Item) -> str:
    """The name of a test; pytest-xdist appends its group."""
    name, bracket, group = item.nodeid.rpartition("]")
    return f"{name}{bracket}{group.partition('@')[0]}"


class ExampleHashes:
    """Writes one line for each property test to a file: its name, the number of its examples and their hash."""

    def __init__(self, file: Path):
        self._file = file

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        if item.get_closest_marker("hypothesis") is None:
            return (yield)
        digest, count, freeze = hashlib.sha256(), 0, ConjectureData.freeze

        def record_and_freeze(data: ConjectureData) -> None:
            nonlocal count
            if not data.frozen:
                count += 1
                digest.update(repr(data.choices).encode())
            freeze(data)

        with patch.object(ConjectureData, "freeze", record_and_freeze):
            outcome = yield
        line = {"test": name_of(item), "examples": count, "hash": digest.hexdigest()}
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return outcome
