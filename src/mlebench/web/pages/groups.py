"""All run groups, newest first: who ran what, how far it has got, what it has earned so far."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mlebench.records.conditions import Conditions, Label, labels
from mlebench.records.run import DAMAGED, PLANNED, RUNNING
from mlebench.records.run_groups import Group, Run
from mlebench.web.draw_run import UNHARMED
from mlebench.web.facts import MEDALS, cost_words, result_of, usage_view
from mlebench.web.remains import short, shown
from mlebench.web.site import Page, Site

PATH = "groups.html"


def paths(_: Site) -> Iterator[str]:
    yield PATH


def page(site: Site, path: str) -> Page:
    labels_of = _labels(site.groups)
    rows = [_row(group, labels_of.get(group.paths.root.name, Label())) for group in site.groups]
    rows.sort(key=lambda row: row["created_at"] or "", reverse=True)
    going_on = any(row["counts"]["running"] or row["counts"]["planned"] for row in rows)
    return Page(path, "groups.html", "Runs", {"groups": rows}, live=site.live and going_on)


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


def usage_of(runs: Sequence[Run]) -> dict[str, Any]:
    """Calls, tokens and US dollars so far, the latter also in words; None if no run has any, or has used a model."""
    uses = [use for run in runs if (use := usage_view(run))]
    known = {name: [use[name] for use in uses if use[name] is not None] for name in ("calls", "all_tokens", "cost")}
    calls, tokens, cost = (sum(values) if values else None for values in known.values())
    partial = len(known["cost"]) < len(uses) or any(use["is_lower_bound"] for use in uses)
    words = cost_words(cost, partial=partial) if uses else None
    return {"cost": cost, "cost_words": words, "calls": calls, "tokens": tokens}


def heading_of(group: Group) -> dict[str, Any]:
    """What pages about a group and its runs say about the group."""
    record = group.record
    return {
        "name": group.paths.root.name,
        "agent": short(record.agent.name, 80),
        "model": shown(record.agent.model, 80),
        "created_at": record.created_at,
        "data": "unknown" if record.twin is None else "twin" if record.twin else "real",
        "origin": record.origin_words,
        "profile": record.profile,
        "competitions": len(record.competitions),
        "seeds": record.seeds,
    }


def _labels(groups: Iterable[Group]) -> dict[str, Label]:
    """What distinguishes groups of one agent, by the name of the group; those under the same conditions share it."""
    namesakes: dict[Any, dict[Any, tuple[Conditions, list[str]]]] = {}
    for group in groups:
        if not group.record.origin:
            conditions = Conditions([group.record])
            alike = namesakes.setdefault(group.record.agent.name, {})
            alike.setdefault((*conditions.keys.values(),), (conditions, []))[1].append(group.paths.root.name)
    labels_of = {}
    for alike in namesakes.values():
        for label, (_, names) in zip(labels([one for one, _ in alike.values()]), alike.values(), strict=True):
            labels_of.update(dict.fromkeys(names, label))
    return labels_of


def _row(group: Group, label: Label) -> dict[str, Any]:
    runs = list(group.runs())
    return {
        **heading_of(group),
        "label": [short(text, 200) for text in label.texts],
        "labelled": list(label.conditions),
        "network": group.record.network,
        "counts": counts_of(runs),
        "medals": medals_of(runs),
        **usage_of(runs),
        "hours": sum(run.record.seconds or 0.0 for run in runs) / 3600,
    }
