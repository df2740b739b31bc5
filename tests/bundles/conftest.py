from pathlib import Path

import pytest
from conftest_run import mlebench  # noqa: F401 a fixture
from forging import write_group

from mlebench.bundles.make import make_bundle
from mlebench.registry import Competition
from mlebench.run.records import Group


@pytest.fixture
def group(titanic: Competition, tmp_path: Path) -> Group:
    """Three runs: the sample submission, none, and nonsense."""
    return write_group(tmp_path / "runs", titanic, [titanic.sample_submission.read_bytes(), None, b"wrong\n1\n"])


@pytest.fixture
def bundle(group: Group, tmp_path: Path) -> Path:
    target = tmp_path / "genuine.bundle.tar.gz"
    make_bundle(group, target)
    return target


@pytest.fixture
def record(titanic: Competition) -> str:
    """The name of the first run's record in a bundle."""
    return f"{titanic.id}_run0/run.json"
