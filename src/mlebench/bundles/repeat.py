"""`mlebench run --like BUNDLE`: repeats a bundle's runs here, with this machine's own agent."""

import re
from collections.abc import Collection
from typing import Any

from mlebench.agents import load_agent
from mlebench.agents.spec import COMMAND
from mlebench.bundles.archive import printable_name
from mlebench.bundles.reader import Bundle
from mlebench.core.errors import PrerequisiteError
from mlebench.core.paths import PROFILES
from mlebench.data.state import data_identity
from mlebench.records.conditions import CONDITIONS
from mlebench.records.group import FOLDERS, NETWORKS, GroupRecord, ModelFacts
from mlebench.records.run_groups import require_ours
from mlebench.registry import Registry

_MODEL = re.compile(r"\w[\w./:@+-]{0,199}")
_LONGEST = 60  # how many characters of a condition to show


def repeatable_record(bundle: Bundle, *, has_agent: bool, folders: Collection[str]) -> GroupRecord:
    """What may be taken from a bundle's group to plan runs like it.

    The user may have named an agent and some of the `folders` that agents may read: `knowledge` and the like.
    Sandbox, image, folders and commands are this machine's own business, as are endpoint, keys, tools and prices: a
    stranger could have written anything there. Raises PrerequisiteError for a group that cannot be repeated.
    """
    record = bundle.group.record
    require_ours(bundle.group)
    if record.profile not in PROFILES:
        raise PrerequisiteError(f"{bundle.path}: there is no profile {record.profile!r} here: update mlebench")
    limits = record.limits and (record.limits.seconds, record.limits.memory, record.limits.cpus, record.limits.shm)
    if record.network not in NETWORKS or any(value is not None and value <= 0 for value in limits or ()):
        raise PrerequisiteError(f"{bundle.path}: the limits or the network of its group make no sense")
    for name in FOLDERS:
        if getattr(record, name) and name not in folders:
            raise PrerequisiteError(
                f"the agent of {bundle.path} was given a folder of its machine: name yours with --{name}"
            )
    return record.changed(
        id=f"{record.id} (bundle {bundle.sha256})",
        agent_source="" if has_agent else _agent_here(bundle),
        agent_command=None,
        data_dir=None,
        sandbox="auto",
        image=None,
        runtime=None,
        retain=False,
        runs_per_gpu=1,
        **dict.fromkeys(FOLDERS),
        model=_model_of(bundle),
    )


def _model_of(bundle: Bundle) -> ModelFacts | None:
    """Models and budget of the bundle's group, at nobody's endpoint."""
    requested = bundle.group.record.model
    if requested is None:
        return None
    if not all(_MODEL.fullmatch(model) for model in requested.models):
        raise PrerequisiteError(f"{bundle.path}: the models of its group have names that no model has")
    budget = requested.budget and printable_name(requested.budget)
    return ModelFacts(provider="", endpoint="", models=requested.models, budget=budget)


def differences(bundle: Bundle, own: GroupRecord) -> list[str]:
    """The conditions that may affect scores and that differ between a group and the bundle's."""
    record = bundle.group.record
    unlike = [
        condition
        for condition in CONDITIONS
        if condition.kind != "detail" and condition.key_of(own) != condition.key_of(record)
    ]
    differing = [
        f"{_shown_value(condition.text_of([own]))}, not {_shown_value(condition.text_of([record]))}"
        for condition in unlike
    ]
    then, now = _plan(record), _plan(own)
    differing += [
        f"{name} {_shown_value(now[name])}, not {_shown_value(then[name])}" for name in then if then[name] != now[name]
    ]
    return differing + [f"data of {id}" for id in own.competitions if _is_other_data(id, bundle, own)]


def _is_other_data(id: str, bundle: Bundle, own: GroupRecord) -> bool:
    reports = [run.record.report for run in bundle.group.runs() if run.record.competition == id and run.record.report]
    graded_with = {report.data for report in reports if report.data}
    return (
        bool(graded_with) and data_identity(Registry(own.data_dir, own.profile).get_competition(id)) not in graded_with
    )


def _plan(record: GroupRecord) -> dict[str, Any]:
    """What a repetition has in common with the original, besides conditions."""
    return {
        "seeds": record.seeds,
        "competitions": sorted(record.competitions),
        "endpoint": record.model and record.model.endpoint,
        "mlebench": record.mlebench,
    }


def _shown_value(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else "none" if value is None else str(value)
    return printable_name(text) if len(text) <= _LONGEST else f"{printable_name(text[:_LONGEST])}…"


def _agent_here(bundle: Bundle) -> str:
    """The agent of the bundle's group, if it is the same here."""
    record = bundle.group.record
    name = printable_name(record.agent.name)
    if record.agent_command is not None or record.agent_source.partition("#")[0] == COMMAND:
        raise PrerequisiteError(
            f"the agent of {bundle.path} is a command that its author wrote, which is not run without your consent: "
            f"give --agent-command yourself"
        )
    try:
        agent = load_agent(record.agent_source)
    except PrerequisiteError as error:
        raise PrerequisiteError(
            f"the agent {name} of {bundle.path} is not here: name one with --agent ({error})"
        ) from None
    if agent.identity != record.agent.identity:
        raise PrerequisiteError(
            f"the agent {name} here has different files from the one in {bundle.path}: get the same "
            f"files, or accept this one with --agent {printable_name(record.agent_source)}"
        )
    return record.agent_source
