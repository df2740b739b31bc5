import shutil
from pathlib import Path

import pytest
from support.forged_bundles import write_group

from mlebench.bundles.make import make_bundle
from mlebench.records.run_groups import Group
from mlebench.registry import Competition


@pytest.fixture(scope="session")
def genuine(titanic: Competition, tmp_path_factory: pytest.TempPathFactory) -> tuple[Group, Path]:
    """Three runs (the sample submission, none, and nonsense) and their bundle; do not change these files."""
    folder = tmp_path_factory.mktemp("genuine")
    group = write_group(folder / "runs", titanic, [titanic.sample_submission.read_bytes(), None, b"wrong\n1\n"])
    make_bundle(group, folder / "bundle.tar.gz")
    return group, folder / "bundle.tar.gz"


@pytest.fixture
def group(genuine: tuple[Group, Path], tmp_path: Path) -> Group:
    return Group.read(shutil.copytree(genuine[0].paths.root, tmp_path / "runs" / genuine[0].record.id))


@pytest.fixture
def bundle(genuine: tuple[Group, Path], tmp_path: Path) -> Path:
    return Path(shutil.copy(genuine[1], tmp_path / "genuine.bundle.tar.gz"))


@pytest.fixture
def record(titanic: Competition) -> str:
    """The name of the first run's record in a bundle."""
    return f"{titanic.id}_run0/run.json"
