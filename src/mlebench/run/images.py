"""The images of containers: the environment's, and those of agents that have a Dockerfile."""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlebench.agents import Agent
from mlebench.agents.folders import environment_dir
from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.sandbox.base import HOME, OwnImage
from mlebench.sandbox.docker import IDENTITY, IMAGE

# Build arguments that Dockerfiles written for the reference expect.
FOLDERS = {
    "SUBMISSION_DIR": f"{HOME}/{paths.SUBMISSION}",
    "LOGS_DIR": f"{HOME}/{paths.LOGS}",
    "CODE_DIR": f"{HOME}/{paths.CODE}",
    "AGENT_DIR": f"{HOME}/agent",
}


def image_facts(agent: Agent, named: str | None) -> dict[str, Any]:
    """A task's image, which only docker uses: the requested one, the agent's own, or ours."""
    if not agent.dockerfile:
        return {"image": named}
    build = f"mlebench image build --agent {shlex.quote(agent.spec)}"
    return {
        "image": named or agent_tag(agent),
        "own_image": OwnImage(build, None if named else _identity(agent)),
    }


def agent_tag(agent: Agent) -> str:
    """The folder's name, as in the reference: its entries share an image. Docker requires lower case."""
    return re.sub("[^a-z0-9]+", "-", agent.folder.name.lower()).strip("-") or "agent"


def _identity(agent: Agent) -> str:
    return f"{agent.identity}/{agent.dockerfile}"


def build_environment(
    tag: str, base_image: str | None = None, *, light: bool = False, options: Sequence[str] = ()
) -> None:
    """Build the image that agents run in; `light`: without the packages they commonly use."""
    arguments = {"BASE_IMAGE": base_image, "INSTALL_HEAVY_DEPENDENCIES": "false" if light else None}
    with tempfile.TemporaryDirectory(prefix=paths.SCRATCH) as scratch:
        # Many other files are beside this folder.
        folder = Path(scratch, "environment")
        shutil.copytree(environment_dir(), folder)
        _build(tag, folder / "Dockerfile", Path(scratch), arguments, options)


def build_agent(agent: Agent, tag: str, options: Sequence[str] = ()) -> None:
    """Build an agent's own image, with a label that identifies its files."""
    if not agent.dockerfile:
        raise PrerequisiteError(f"the agent {agent.name} has no `dockerfile` in its {paths.CONFIG}: it needs no image")
    with tempfile.TemporaryDirectory(prefix=paths.SCRATCH) as scratch:
        agent.copy_to(Path(scratch))
        label = ["--label", f"{IDENTITY}={_identity(agent)}"]
        _build(tag, Path(scratch, agent.dockerfile), Path(scratch), FOLDERS, [*label, *options])


def builds_on_environment(agent: Agent) -> bool:
    """Whether an agent's Dockerfile begins where ours ends."""
    if not agent.dockerfile:
        return False
    text = (agent.folder / agent.dockerfile).read_text(encoding="utf-8", errors="replace")
    return re.search(rf"^\s*FROM\s(.*\s)?{IMAGE}(:latest)?\s*$", text, re.MULTILINE | re.IGNORECASE) is not None


def _build(
    tag: str, dockerfile: Path, context: Path, arguments: Mapping[str, str | None], options: Sequence[str]
) -> None:
    command = ["docker", "build", "--platform=linux/amd64", "--tag", tag, "--file", str(dockerfile)]
    for name, value in arguments.items():
        command += ["--build-arg", f"{name}={value}"] if value is not None else []
    try:
        code = subprocess.run([*command, *options, str(context)], stdout=sys.stderr, check=False).returncode  # noqa: S603
    except FileNotFoundError:
        raise PrerequisiteError("there is no `docker`: install Docker, or use --sandbox bubblewrap") from None
    if code != 0:
        raise PrerequisiteError(f"`docker build` of {tag} failed with exit code {code}; see its output above")
