"""`mlebench run --like BUNDLE`: the same runs here, by an agent that is here."""

from typing import Any

from mlebench.agents import load_agent
from mlebench.agents.spec import COMMAND
from mlebench.bundles.archive import shown
from mlebench.bundles.reading import Bundle
from mlebench.errors import PrerequisiteError
from mlebench.paths import PROFILES

NETWORKS = ("none", "model", "full")
LIMITS = {"time_limit": "seconds", "memory": "memory", "cpus": "cpus", "shm": "shm"}  # options: what records call them


def as_options(bundle: Bundle, given: dict[str, Any]) -> dict[str, Any]:
    """What `mlebench run` is to take over from a bundle, beside the options that are given.

    Sandbox, image, folders and commands are this machine's own business: a stranger could have written anything there.
    """
    record = bundle.group.record
    if record.profile != PROFILES[0]:
        raise PrerequisiteError(f"{bundle.path}: runs of profile {record.profile} cannot be planned")
    limits = {option: record.limits.get(name) for option, name in LIMITS.items()}
    if record.network not in NETWORKS or any(value is not None and value <= 0 for value in limits.values()):
        raise PrerequisiteError(f"{bundle.path}: the limits or the network of its group make no sense")
    if record.knowledge and not given["knowledge"]:
        raise PrerequisiteError(f"the agent of {bundle.path} could read a folder: give yours with --knowledge")
    return {
        **({} if given["agent"] or given["agent_command"] else {"agent": _agent_here(bundle)}),
        "ids": list(record.competitions),
        "seeds": record.seeds,
        "network": record.network,
        "obfuscate": record.obfuscate,
        "twin": record.twin,
        "knowledge_sha256": record.knowledge_sha256,  # to be compared only
        **limits,
    }


def _agent_here(bundle: Bundle) -> str:
    """The agent of the bundle's group, if it is the same here."""
    record = bundle.group.record
    name = shown(record.agent["name"])
    if record.agent_command is not None or record.agent_source.partition("#")[0] == COMMAND:
        raise PrerequisiteError(
            f"the agent of {bundle.path} is a command of its author, which is not run just so: "
            f"give --agent-command yourself"
        )
    try:
        agent = load_agent(record.agent_source)
    except PrerequisiteError as error:
        raise PrerequisiteError(f"the agent {name} of {bundle.path} is not here: give --agent ({error})") from None
    if agent.identity != record.agent["identity"]:
        raise PrerequisiteError(
            f"the agent {name} here has other files than that of {bundle.path}: get the same, or accept this one "
            f"with --agent {shown(record.agent_source)}"
        )
    return record.agent_source
