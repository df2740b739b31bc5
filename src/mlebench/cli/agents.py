"""mlebench agents"""

from pathlib import Path
from typing import Any

import click
import msgspec

from mlebench.agents import Agent, built_in, install_fault, load_agent, npm, npm_dir, venvs
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
@click.option("--version", help="Another version of the agent's npm package than the locked one.")
@click.option(
    "--from",
    "packed",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Install npm packages from this folder of files of `npm pack`, without a network.",
)
@click.option("--python", help="The Python for the venv. Default: the version that the agent names, or this one.")
@click.option(
    "--lock", is_flag=True, help="First find versions for its requirements and all they need, and write them to a lock."
)
def install(
    agent: str, wheels: Path | None, version: str | None, packed: Path | None, python: str | None, lock: bool
) -> None:
    """Install the packages that an agent needs.

    Python packages go into a separate venv. Their versions are those of requirements.lock in the agent's folder or,
    without a lock, those that its requirements state. npm packages go into a folder that all runs share. What already
    exists is not installed again. Runs use another --version with `--agent-option version=VERSION`.
    """
    loaded = _load(agent)
    if loaded.npm:
        _install_programs(load_agent(agent, options={"version": version}) if version else loaded, packed)
    elif version or packed:
        raise PrerequisiteError(f"--version and --from are for npm packages, and the agent {loaded.name} has none")
    if loaded.requirements or not loaded.npm:
        _install_venv(loaded, agent, wheels, python, lock)


def _install_programs(loaded: Agent, packed: Path | None) -> None:
    with spinner(f"installing the programs of {loaded.name}"):
        folder, is_new = npm.install(loaded, packed)
    click.echo(folder)
    click.echo("installed" if is_new else "already installed", err=True)


def _install_venv(loaded: Agent, agent: str, wheels: Path | None, python: str | None, lock: bool) -> None:
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
        "npm packages": bool(agent.npm),
        "a venv": agent.requirements is not None,
    }
    return ", ".join(need for need, is_needed in needs.items() if is_needed) or None


def _state(agent: Agent) -> str:
    if fault := install_fault(agent, has_environment=agent.python_environment is not None):
        return fault
    if agent.python_environment:
        return f"environment {agent.python_environment}"
    installs = {"npm packages": npm_dir(agent), "venv": venvs.venv_of(agent)}
    return ", ".join(["ready", *(f"{name} {folder}" for name, folder in installs.items() if folder)])


def _as_argument(folder: Path) -> str:
    """A folder that cannot be taken for a built-in agent's name."""
    return str(folder) if folder.is_absolute() or len(folder.parts) > 1 else f"./{folder}"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items()) or "-"
    return " ".join(map(str, value)) or "-" if isinstance(value, tuple | list) else cell(value)
