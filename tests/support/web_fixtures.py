import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlebench.core.serve import LOOPBACK, listening, server_of
from mlebench.registry import Registry
from mlebench.web.server import application
from mlebench.web.site_reader import SiteReader
from support.sites import make_group
from support.waiting import wait_until

COMPETITIONS = ("aerial-cactus-identification", "random-acts-of-pizza", "spooky-author-identification")


def agent(name: str, model: str | None = None) -> dict[str, Any]:
    return {"name": name, "identity": name, "model": model, "scaffold": None}


def make_runs(runs: Path) -> Path:
    """Four groups: two agents on real data, one of them again with a network and still running, and one on twins."""
    make_group(runs, "one", COMPETITIONS, skill=0.9, agent=agent("one", "model-a"))
    make_group(runs, "two", COMPETITIONS, skill=0.3, agent=agent("two", "model-b"), network="full")
    make_group(
        runs, "three", COMPETITIONS, seeds=1, states=("ended", "running", "planned"), agent=agent("three", "model-b")
    )
    make_group(runs, "dummy", COMPETITIONS[:1], skill=0.1, twin=True, agent=agent("dummy"))
    return runs


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that no test may write to."""
    return make_runs(tmp_path_factory.mktemp("site") / "runs")


@pytest.fixture
def own_runs(tmp_path: Path) -> Path:
    return make_runs(tmp_path / "runs")


class Serving:
    """A server in a thread, for as long as it is needed."""

    def __init__(self, folder: Path):
        self._listening = listening(LOOPBACK, (0,), None)
        self._server = server_of(application(SiteReader([folder], Registry(folder.parent / "data"))))

    def __enter__(self) -> str:
        (bound,) = self._listening.__enter__()
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [bound]}, daemon=True)
        self._thread.start()
        wait_until(lambda: self._server.started, "the server has started")
        return f"http://{LOOPBACK}:{bound.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listening.__exit__(None, None, None)


@pytest.fixture(scope="session")
def served(runs: Path) -> Iterator[str]:
    with Serving(runs) as address:
        yield address
