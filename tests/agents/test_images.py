"""What docker is asked to build, and when a run says that an image is missing. The docker here only records calls."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mlebench.agents import load_agent
from mlebench.registry import Competition
from mlebench.run.images import agent_tag, builds_on_environment

COURIER = Path(__file__).with_name("mlebench-test-courier")
DOCKER = """#!{python}
import json, os, shutil, sys
here = {here!r}
words = sys.argv[1:]
with open(here + "/calls.jsonl", "a") as calls:
    calls.write(json.dumps(words) + "\\n")
if words[0] == "version":
    print("28.0")
elif words[:2] == ["image", "inspect"]:
    images = json.load(open(here + "/images.json"))
    if words[2] not in images:
        sys.exit("No such image")
    print(json.dumps([images[words[2]]]))
elif words[0] == "build":
    tag = words[words.index("--tag") + 1]
    shutil.copytree(words[-1], here + "/context of " + tag)
    labels = dict(word.split("=", 1) for before, word in zip(words, words[1:]) if before == "--label")
    images = json.load(open(here + "/images.json"))
    images[tag] = {{"Id": "sha256:" + tag, "Config": {{"Labels": labels, "Env": None}}}}
    json.dump(images, open(here + "/images.json", "w"))
    print("Successfully built")
    sys.exit("--fail" in words)
"""


class FakeDocker:
    def __init__(self, folder: Path):
        self.folder = folder
        program = folder / "bin/docker"
        program.parent.mkdir(parents=True)
        program.write_text(DOCKER.format(python=sys.executable, here=str(folder)))
        program.chmod(0o755)
        (folder / "images.json").write_text("{}")

    def mlebench(self, *arguments: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        env = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        command = [sys.executable, "-P", "-m", "mlebench", *arguments]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def builds(self) -> dict[str, list[str]]:
        """The words of each build, by tag, in order."""
        lines = (self.folder / "calls.jsonl").read_text().splitlines()
        calls = [words for words in map(json.loads, lines) if words[0] == "build"]
        return {words[words.index("--tag") + 1]: words for words in calls}

    def context(self, tag: str) -> Path:
        return self.folder / f"context of {tag}"


@pytest.fixture
def docker(tmp_path: Path) -> FakeDocker:
    return FakeDocker(tmp_path / "docker")


@pytest.fixture
def courier(tmp_path: Path) -> Path:
    return Path(shutil.copytree(COURIER, tmp_path / "agents" / COURIER.name))


def _after(words: list[str], option: str) -> list[str]:
    return [words[place + 1] for place, word in enumerate(words) if word == option]


def test_the_environment_is_built_from_its_folder_alone(docker: FakeDocker) -> None:
    done = docker.mlebench("image", "build")
    assert done.stdout == "sha256:mlebench-env\n", "what docker says goes to stderr"
    assert "Successfully built" in done.stderr
    ((tag, words),) = docker.builds().items()
    assert tag == "mlebench-env"
    assert "--platform=linux/amd64" in words
    assert _after(words, "--build-arg") == [], "the Dockerfile has the defaults"
    context = docker.context(tag)
    assert [path.name for path in context.iterdir()] == ["environment"]
    assert Path(_after(words, "--file")[0]).relative_to(words[-1]) == Path("environment/Dockerfile")
    assert (context / "environment/requirements.txt").is_file()
    assert os.access(context / "environment/conda/bin/conda", os.X_OK)


def test_options_of_the_environment_and_of_docker(docker: FakeDocker) -> None:
    docker.mlebench(
        *("image", "build", "--light", "--base-image", "debian:bookworm", "--tag", "bare"),
        *("--", "--network", "host", "--build-arg", "PIP_INDEX_URL"),
    )
    words = docker.builds()["bare"]
    assert set(_after(words, "--build-arg")) == {
        *("BASE_IMAGE=debian:bookworm", "INSTALL_HEAVY_DEPENDENCIES=false", "PIP_INDEX_URL"),
    }
    assert _after(words, "--network") == ["host"]


def test_an_agents_image_is_built_from_its_folder_on_top_of_the_environment(docker: FakeDocker, courier: Path) -> None:
    (courier / ".git").mkdir()
    (courier / ".git/config").write_text("not the agent's")
    (courier / "notes.txt").chmod(0o600)
    docker.mlebench("image", "build", "--agent", f"{courier}#courier/argparse")
    environment, words = docker.builds().values()
    assert _after(environment, "--tag") == ["mlebench-env"], "which was missing"
    assert _after(words, "--tag") == [COURIER.name], "the folder's name, as in the reference"
    assert _after(words, "--build-arg") == [
        *("SUBMISSION_DIR=/home/submission", "LOGS_DIR=/home/logs", "CODE_DIR=/home/code", "AGENT_DIR=/home/agent"),
    ]
    context = docker.context(COURIER.name)
    assert {path.name for path in context.iterdir()} == {path.name for path in COURIER.iterdir()}
    assert (context / "notes.txt").stat().st_mode & 0o777 == 0o644, "whoever runs the container can read it"
    docker.mlebench("image", "build", "--agent", f"{courier}#courier", "--tag", "other")
    assert list(docker.builds()) == ["mlebench-env", COURIER.name, "other"], "the environment is there now"


def test_a_build_that_fails_or_cannot_be_done(docker: FakeDocker, courier: Path) -> None:
    done = docker.mlebench("image", "build", "--", "--fail", code=1)
    assert "`docker build` of mlebench-env failed with exit code 1" in done.stderr
    done = docker.mlebench("image", "build", "--agent", "dummy", code=1)
    assert "has no `dockerfile`" in done.stderr


def test_a_run_asks_for_the_agents_image_as_its_folder_is_now(
    docker: FakeDocker, courier: Path, titanic: Competition
) -> None:
    agent = f"{courier}#courier"
    run = ["run", "--agent", agent, "-c", titanic.id, "--data-dir", str(titanic.paths.data_dir), "--sandbox", "docker"]
    done = docker.mlebench(*run, code=1)
    build = f"`mlebench image build --agent '{agent}'`"
    assert f"there is no image {COURIER.name}: build it with {build}" in done.stderr
    docker.mlebench("image", "build", "--agent", agent)
    (courier / "notes.txt").write_text("changed\n")
    done = docker.mlebench(*run, code=1)
    assert "was not built from the agent's folder as it is now" in done.stderr
    assert build in done.stderr
    done = docker.mlebench(*run, "--image", "mine", code=1)
    assert "there is no image mine" in done.stderr


def test_which_image_an_agent_builds_on(courier: Path) -> None:
    assert builds_on_environment(load_agent(f"{courier}#courier"))
    for first in ("FROM --platform=linux/amd64 mlebench-env", "from mlebench-env:latest"):
        (courier / "Dockerfile").write_text(f"# mine\n{first}\n")
        assert builds_on_environment(load_agent(f"{courier}#courier"))
    (courier / "Dockerfile").write_text("FROM python:3.12\n# not mlebench-env\n")
    assert not builds_on_environment(load_agent(f"{courier}#courier"))


def test_tags_are_valid_for_docker(tmp_path: Path) -> None:
    folder = tmp_path / "My_Agent v2"
    folder.mkdir()
    (folder / "start.sh").write_text("")
    (folder / "config.yaml").write_text('one: {start: "My_Agent v2/start.sh"}')
    assert agent_tag(load_agent(str(folder))) == "my-agent-v2"
