"""A folder in the reference's form, with conda calls and a Dockerfile, runs unchanged in bubblewrap and docker."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.run_fixtures import Mlebench, reports_of
from support.sandboxes import require

from mlebench.records.run_groups import Group, Run
from mlebench.registry import Competition

pytestmark = pytest.mark.xdist_group("images")  # one process builds and removes them

COURIER = Path(__file__).parent.parent / "agents/mlebench-test-courier"
BASE = "mlebench-base"  # what .ci/sandboxes makes from Debian's packages
LEGACY = {"DOCKER_BUILDKIT": "0"}  # not every Docker has BuildKit
PACKAGES = "dpkg-query --show; pip list --format freeze; python3 --version; find /opt/conda -type f | sort"


def docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    """The courier's image, for the duration of the tests."""
    require("docker")
    command = [sys.executable, "-P", "-m", "mlebench", "image", "build", "--agent", f"{COURIER}#courier"]
    done = subprocess.run(command, env={**os.environ, **LEGACY}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    yield done.stdout.strip()
    docker("rmi", "--force", COURIER.name)


@pytest.fixture(params=["bubblewrap", "docker"])
def sandbox(request: pytest.FixtureRequest) -> str:
    require(request.param)
    if request.param == "docker":
        request.getfixturevalue("image")
    return request.param


def run(mlebench: Mlebench, titanic: Competition, runs: Path, sandbox: str, id: str) -> tuple[Group, Run, list[str]]:
    named = ["--agent", f"{COURIER}#{id}", "-c", titanic.id, "--sandbox", sandbox, "--runs-dir", str(runs)]
    mlebench("run", *named, "--time-limit", "100")
    (folder,) = runs.iterdir()
    group = Group.read(folder)
    (one,) = group.runs()
    return group, one, [line for line in one.paths.log.read_text().splitlines() if not line.startswith("+")]


def test_a_reference_agent_ends_with_a_graded_submission(
    mlebench: Mlebench, titanic: Competition, tmp_path: Path, sandbox: str, request: pytest.FixtureRequest
) -> None:
    group, one, log = run(mlebench, titanic, tmp_path / "runs", sandbox, "courier")
    assert one.record.ended == "finished", log
    (report,) = reports_of(group)
    assert report["valid_submission"]
    assert f"competition={titanic.id} steps=500 seconds=100" in log, "the clock is ours, the rest its own"
    assert "user nonroot not root" in log
    assert "arguments ['agent.steps=500', 'copy_data=False']" in log
    assert {"activated agent", "sourced base", "Submission is valid."} <= {*log}
    assert "conda install ended with 1" in log
    assert one.record.conditions.sealed
    if sandbox == "docker":
        assert "packed in the image" in log
        assert (one.paths.logs / "link.txt").read_text() == "through a link\n"
        assert one.record.conditions.image == COURIER.name
        assert one.record.conditions.image_id == request.getfixturevalue("image")


def test_obfuscate_among_its_variables_is_honoured_by_us(
    mlebench: Mlebench, titanic: Competition, tmp_path: Path, sandbox: str
) -> None:
    group, one, log = run(mlebench, titanic, tmp_path / "runs", sandbox, "courier/obfuscated")
    assert group.record.obfuscate
    assert one.record.conditions.description == "obfuscated"
    assert "cannot obfuscate" not in log
    assert not any(titanic.id in line for line in log)
    assert reports_of(group)[0]["valid_submission"]


def test_two_light_builds_have_the_same_contents(mlebench: Mlebench) -> None:
    require("docker")
    if subprocess.run(["docker", "image", "inspect", BASE], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"docker: there is no image {BASE}, which .ci/sandboxes makes")
    tags = ("mlebench-test-light-1", "mlebench-test-light-2")
    try:
        lists = []
        for tag in tags:
            mlebench("image", "build", "--light", "--base-image", BASE, "--tag", tag, "--", "--no-cache", env=LEGACY)
            lists.append(docker("run", "--rm", "--network", "none", "--user", "nonroot", tag, "bash", "-c", PACKAGES))
        assert lists[0] == lists[1]
        assert "pip==" in lists[0]
        assert "torch" not in lists[0]
    finally:
        docker("rmi", "--force", *tags)
