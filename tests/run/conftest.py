from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from mlebench.grade.worker import Worker


@pytest.fixture(scope="session")
def _grading_process() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.end()


@pytest.fixture(autouse=True)
def _one_grading_process(_grading_process: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of runs are executed in the process of a test; to start one that grades takes a second each time."""
    kept = SimpleNamespace(grade=_grading_process.grade, end=lambda: None)
    monkeypatch.setattr("mlebench.grade.submission.Worker", lambda: kept)
