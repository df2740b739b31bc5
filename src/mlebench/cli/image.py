"""mlebench image"""

import click

from mlebench.agents import load_agent
from mlebench.cli.console import log_line
from mlebench.cli.invocation import VerbGroup
from mlebench.sandbox.docker import IMAGE, image_id


@click.group("image", cls=VerbGroup)
def command() -> None:
    """Build the Docker images that agents run in."""


@command.command()
@click.option("--agent", metavar="FOLDER[#ID]", help="Build this agent's own image, from its Dockerfile.")
@click.option(
    "--base-image", metavar="IMAGE", help="The image to build mlebench-env on. Default: python:3.11-slim-bookworm."
)
@click.option(
    "--light", is_flag=True, help="Build mlebench-env as a bare Python, without the packages agents commonly use."
)
@click.option("--tag", help="The image's name. Default: mlebench-env, or the name of the agent's folder.")
@click.argument("options", nargs=-1, metavar="[-- OPTIONS OF DOCKER BUILD]")
def build(agent: str | None, base_image: str | None, light: bool, tag: str | None, options: tuple[str, ...]) -> None:
    """Build mlebench-env or an agent's own image.

    The Dockerfile of an agent, named with --agent, usually begins with FROM mlebench-env. That image is built first
    if it is missing, or if --base-image or --light is given. What follows `--` goes to `docker build`: --
    --build-arg PIP_INDEX_URL
    """
    from mlebench.run.images import agent_tag, build_agent, build_environment, builds_on_environment

    loaded = load_agent(agent) if agent else None
    name = tag or (agent_tag(loaded) if loaded else IMAGE)
    if loaded is None:
        build_environment(name, base_image, light=light, options=options)
    else:
        if builds_on_environment(loaded) and (base_image or light or image_id(IMAGE) is None):
            build_environment(IMAGE, base_image, light=light, options=options)
        build_agent(loaded, name, options)
    log_line(f"Built {name}")
    click.echo(image_id(name))
