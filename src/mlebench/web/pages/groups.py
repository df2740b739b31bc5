"""All run groups, newest first: who ran what, how far it has got, what it has earned so far."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypedDict

import msgspec

from mlebench.core.untrusted import one_line
from mlebench.records.conditions import Conditions, EntryLabel, labels
from mlebench.records.run import DAMAGED, PLANNED, RUNNING
from mlebench.records.run_groups import Group, Run
from mlebench.web.draw_run import UNHARMED
from mlebench.web.record_values import MEDALS, cost_words, result_of, usage_view
from mlebench.web.run_files import shown
from mlebench.web.site import Page, Site
from mlebench.web.views import View

PATH = "groups.html"


class UsageColumns(TypedDict):
    """Calls, tokens and US dollars so far, the latter also in words; None if no run has any, or has used a model."""

    cost: float | None
    cost_words: str | None
    calls: int | None
    tokens: int | None


class Heading(View):
    """What pages about a group and its runs say about the group."""

    name: str
    agent: str
    model: str | None
    created_at: str | None
    data: str
    origin: str | None
    profile: str
    competitions: int
    seeds: int


class GroupRow(Heading):
    label: list[str]
    labelled: list[str]
    network: str
    counts: dict[str, int]
    medals: dict[str, int]
    cost: float | None
    cost_words: str | None
    calls: int | None
    tokens: int | None
    hours: float


class GroupsView(View):
    groups: list[GroupRow]


def paths(_: Site) -> Iterator[str]:
    yield PATH


def page(site: Site, path: str) -> Page:
    labels_of = _labels(site.groups)
    rows = [_row(group, labels_of.get(group.paths.root.name, EntryLabel())) for group in site.groups]
    rows.sort(key=lambda row: row.created_at or "", reverse=True)
    going_on = any(row.counts["running"] or row.counts["planned"] for row in rows)
    return Page(path, "groups.html", "Runs", GroupsView(groups=rows), live=site.live and going_on)


ROUTES = ((r"groups\.html", page),)


def counts_of(runs: Sequence[Run]) -> dict[str, int]:
    """How many runs are in each state. `ended` does not include those that `failed`."""
    states = Counter("failed" if is_failed(run) else run.state for run in runs)
    return {
        "runs": len(runs),
        "ended": states["ended"],
        "failed": states["failed"],
        "damaged": states[DAMAGED],
        "running": states[RUNNING],
        "planned": states[PLANNED],
    }


def is_failed(run: Run) -> bool:
    return run.record.is_final and run.record.ended not in (None, *UNHARMED)


def medals_of(runs: Sequence[Run]) -> dict[str, int]:
    won = Counter(map(result_of, runs))
    return {name: won[name] for name in MEDALS}


def usage_columns(runs: Sequence[Run]) -> UsageColumns:
    uses = [use for run in runs if (use := usage_view(run))]
    costs = [use.cost for use in uses if use.cost is not None]
    tokens = [use.all_tokens for use in uses if use.all_tokens is not None]
    cost = sum(costs) if costs else None
    partial = len(costs) < len(uses) or any(use.is_lower_bound for use in uses)
    return {
        "cost": cost,
        "cost_words": cost_words(cost, partial=partial) if uses else None,
        "calls": sum(use.calls for use in uses) if uses else None,
        "tokens": sum(tokens) if tokens else None,
    }


def heading_of(group: Group) -> Heading:
    record = group.record
    return Heading(
        name=group.paths.root.name,
        agent=one_line(record.agent.name, 80),
        model=shown(record.agent.model, 80),
        created_at=record.created_at,
        data="unknown" if record.twin is None else "twin" if record.twin else "real",
        origin=record.origin_words,
        profile=record.profile,
        competitions=len(record.competitions),
        seeds=record.seeds,
    )


def _labels(groups: Iterable[Group]) -> dict[str, EntryLabel]:
    """What distinguishes groups of one agent, by the name of the group; those under the same conditions share it."""
    namesakes: dict[Any, dict[Any, tuple[Conditions, list[str]]]] = {}
    for group in groups:
        if not group.record.origin:
            conditions = Conditions([group.record])
            alike = namesakes.setdefault(group.record.agent.name, {})
            alike.setdefault((*conditions.keys.values(),), (conditions, []))[1].append(group.paths.root.name)
    labels_of = {}
    for alike in namesakes.values():
        for label, (_, names) in zip(
            labels([conditions for conditions, _ in alike.values()]), alike.values(), strict=True
        ):
            labels_of.update(dict.fromkeys(names, label))
    return labels_of


def _row(group: Group, label: EntryLabel) -> GroupRow:
    runs = list(group.runs())
    return GroupRow(
        **msgspec.structs.asdict(heading_of(group)),
        label=[one_line(text, 200) for text in label.texts],
        labelled=list(label.conditions),
        network=group.record.network,
        counts=counts_of(runs),
        medals=medals_of(runs),
        **usage_columns(runs),
        hours=sum(run.record.seconds or 0.0 for run in runs) / 3600,
    )
