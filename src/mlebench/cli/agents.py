"""mlebench agents"""

from pathlib import Path
from typing import Any

import click
import msgspec

from mlebench.agents import Agent, built_in, load_agent, venvs
from mlebench.agents.locks import write_lock
from mlebench.agents.spec import COMMAND
from mlebench.cli.console import cell, print_json, print_table, spinner
from mlebench.cli.invocation import VerbGroup, refuse_json_before
from mlebench.cli.options import json_option
from mlebench.core.errors import PrerequisiteError


@click.group("agents", invoke_without_command=True, cls=VerbGroup)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Show the built-in agents, and others whose venv is installed."""
    refuse_json_before(context, as_json)
    if context.invoked_subcommand:
        return
    agents = [_load(name) for name in built_in()]
    rows = [
        {"name": agent.name, "model": agent.model, "needs": _needs(agent), "state": _state(agent)} for agent in agents
    ]
    inside = {str(agent.folder) for agent in agents}
    for venv, record in venvs.installed():
        if record.folder not in inside:
            fault = venvs.installed_fault(venv)
            state = f"not ready: {fault}" if fault else f"venv {venv}"
            rows.append({"name": f"{record.folder}#{record.agent}", "model": None, "needs": "venv", "state": state})
    if as_json:
        print_json(rows)
    else:
        print_table(list(rows[0]), [list(row.values()) for row in rows])


@command.command()
@click.argument("agent")
@json_option
def show(agent: str, as_json: bool) -> None:
    """Show what is known about an agent.

    AGENT is a name or a folder; add #ID to choose an entry of its config.yaml.
    """
    loaded = _load(agent)
    facts = {**msgspec.structs.asdict(loaded.facts()), "needs": _needs(loaded), "state": _state(loaded)}
    if as_json:
        print_json(facts)
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        click.echo(f"{name.replace('_', ' ').ljust(width)}  {_text(value)}")


@command.command()
@click.argument("name")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="Where to create it.",
)
def new(name: str, folder: Path) -> None:
    """Create an agent of your own.

    The folder NAME works as it is, and has a place for your code.
    """
    from mlebench.agents.new_agent import new_agent

    made = new_agent(name, folder)
    click.echo(made)
    click.echo(f"Try it: mlebench run --agent {_as_argument(made)} -c spaceship-titanic --twin", err=True)


@command.command()
@click.argument("agent")
@click.option(
    "--wheels",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Install from this folder of wheels, without a network.",
)
@click.option("--python", help="The Python for the venv. Default: the version that the agent names, or this one.")
@click.option(
    "--lock", is_flag=True, help="First find versions for its requirements and all they need, and write them to a lock."
)
def install(agent: str, wheels: Path | None, python: str | None, lock: bool) -> None:
    """Install the packages that an agent needs.

    They go into a separate venv, in the locked versions that AGENT names, or in those of the lock beside its
    requirements, if there is one. If that venv already exists, nothing is done.
    """
    loaded = _load(agent)
    if lock:
        with spinner(f"finding versions of what {loaded.name} needs"):
            written = write_lock(loaded, wheels, python)
        click.echo(f"locked in {written}", err=True)
        loaded = _load(agent)  # the lock is one of its files
    with spinner(f"installing what {loaded.name} needs"):
        venv, is_new = venvs.install(loaded, wheels, python)
    click.echo(venv)
    click.echo("installed" if is_new else "already installed", err=True)
    for complaint in venvs.record_of(venv).complaints:
        click.echo(f"pip check: {complaint}", err=True)
    if fault := venvs.venv_fault(loaded):
        raise PrerequisiteError(f"the agent {loaded.name} is {fault}")


def _load(text: str) -> Agent:
    """Load an agent to show; `command` has no command outside a run."""
    return load_agent(text, "" if text.partition("#")[0] == COMMAND else None)


def _needs(agent: Agent) -> str | None:
    needs = {
        "--agent-command": agent.shell_command is not None,
        "the answers": agent.host_only,
        "a model": bool(agent.model or agent.needs_model),
        **dict.fromkeys(agent.secrets.values(), True),
        "privileged": agent.privileged,
        "a venv": agent.requirements is not None,
    }
    return ", ".join(need for need, is_needed in needs.items() if is_needed) or None


def _state(agent: Agent) -> str:
    if agent.python_environment:
        return f"environment {agent.python_environment}"
    venv = venvs.venv_of(agent)
    return venvs.venv_fault(agent) or (f"ready, venv {venv}" if venv else "ready")


def _as_argument(folder: Path) -> str:
    """A folder that cannot be taken for a built-in agent's name."""
    return str(folder) if folder.is_absolute() or len(folder.parts) > 1 else f"./{folder}"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items()) or "-"
    return " ".join(map(str, value)) or "-" if isinstance(value, tuple | list) else cell(value)
