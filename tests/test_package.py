"""What a plain `pip install` includes."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import mlebench

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bool]:
    """The files in the wheel, and whether each is a program."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("mlebench-*.whl")
    with zipfile.ZipFile(built) as archive:
        return {file.filename: bool(file.external_attr >> 16 & 0o111) for file in archive.infolist()}


def test_the_wheel_contains_every_file_of_the_package(wheel: dict[str, bool]) -> None:
    source = Path(mlebench.__file__).parent
    here = {
        f"mlebench/{path.relative_to(source).as_posix()}"
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    environment = {name for name in wheel if name.startswith("mlebench/environment/")}
    assert here == {name for name in wheel if name.startswith("mlebench/")} - environment
    assert {
        f"mlebench/environment/{name}" for name in ("instructions.txt", "Dockerfile", "requirements.txt")
    } <= wheel.keys()
    assert wheel["mlebench/environment/conda/bin/conda"], "`mlebench image build` makes a program of it"


def test_the_wheel_puts_nothing_beside_the_package(wheel: dict[str, bool]) -> None:
    assert {name.partition("/")[0] for name in wheel} == {"mlebench", f"mlebench-{mlebench.__version__}.dist-info"}


def test_no_file_names_a_package_index_and_no_lock_file_is_kept() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    assert not [name for name in tracked if name.endswith((".lock", "package-lock.json"))]
    constraints = (ROOT / "constraints.txt").read_text()
    assert "://" not in constraints
    assert all("==" in line for line in constraints.splitlines() if line and not line.startswith("#"))


def test_the_core_needs_no_heavy_library() -> None:
    import tomllib

    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {need.split(">")[0].lower() for need in needs}
    assert not names & {"tensorflow", "scikit-learn", "pymongo", "docker", "openai", "torch"}
