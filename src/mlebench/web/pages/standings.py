"""How well agents do: a row for each agent under the same conditions, for each split and category."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from mlebench.report.intervals import LEVEL
from mlebench.report.render import columns, notes
from mlebench.report.standings import EntryStandings, StandingsOptions
from mlebench.report.types import Entry
from mlebench.web.pages import group
from mlebench.web.site import Page, Site, StandingsPage, agent_of

HOME = "index.html"


def path_of(site: Site, board: StandingsPage) -> str:
    """The first board is the front page."""
    return HOME if site.boards and board.name == site.boards[0].name else f"standings/{board.name}.html"


def paths(site: Site) -> Iterator[str]:
    yield from (path_of(site, board) for board in site.boards)
    if not site.boards:
        yield HOME


def page(site: Site, path: str, name: str | None = None) -> Page | None:
    board = site.board_named.get(name) if name else next(iter(site.boards), None)
    if name and (board is None or path_of(site, board) != path):
        return None
    if board is None:
        return no_standings(site, path, "Standings")
    standings = board.standings
    data = {
        "board": board.name,
        "title": board.title,
        "boards": [{"title": other.title, "path": path_of(site, other)} for other in site.boards],
        "profile": standings.profile,
        "data": standings.data,
        "padded": standings.padded,
        "level": LEVEL,
        "notes": notes(standings),
        "differing": [{"name": one.name, "title": one.title} for one in columns(standings)],
        "scopes": _scope_names(board),
        "rows": sorted(
            _rows(board), key=lambda row: -row["figures"]["any_medal"]["mean"] if row["figures"]["any_medal"] else 1
        ),
        "entries": [_entry(site, slug, row) for slug, row in board.entries.items()],
        "findings": [
            {"agent": row.entry.agent, "share": count.share, **asdict(count)}
            for row in standings.entries
            for count in row.finding_counts
        ],
        "published": [asdict(entry) for entry in standings.published],
    }
    going_on = any(
        outcome.missing in ("running", "planned") for row in board.entries.values() for outcome in row.entry.outcomes
    )
    return Page(path, "standings.html", "Standings", data, live=site.live and going_on)


def no_standings(site: Site, path: str, title: str) -> Page:
    """What is shown in the place of standings as long as there are none."""
    runs = sum(1 for group in site.groups for _ in group.run_paths())
    return Page(path, "empty.html", title, {"boards": [], "groups": len(site.groups), "runs": runs})


ROUTES = ((HOME.replace(".", r"\."), page), (r"standings/([a-z0-9-]+)\.html", page))


def _scope_names(board: StandingsPage) -> list[dict[str, Any]]:
    """The choices: splits, those that most agents were run on first, then categories."""
    counts: dict[tuple[str, str], int] = {}
    for found in board.standings.entries:
        for scope in found.scopes:
            counts[scope.kind, scope.name] = counts.get((scope.kind, scope.name), 0) + 1
    kinds = ("split", "given", "category")
    ordered = sorted(
        counts, key=lambda one: (kinds.index(one[0]), -counts[one], one[1] if one[0] == "category" else "")
    )
    return [{"kind": kind, "name": name, "entries": counts[kind, name]} for kind, name in ordered]


def _entry(site: Site, slug: str, found: EntryStandings) -> dict[str, Any]:
    entry = found.entry
    outcomes = entry.outcomes
    return {
        **agent_of(slug, entry),
        "name": entry.name or entry.agent,
        "hours_limit": entry.hours_limit,
        "conditions": entry.conditions.values,
        "condition_texts": entry.conditions.texts,
        "stated": entry.conditions.are_stated,
        "label": list(entry.label.conditions),
        "pooled": entry.conditions.pooled,
        "inputs": list(entry.inputs),
        "groups": [group.path_of(folder) for id in entry.inputs if (folder := site.folder_of_group.get(id))],
        "runs": len(outcomes),
        "going_on": sum(outcome.missing == "running" for outcome in outcomes),
        "planned": sum(outcome.missing == "planned" for outcome in outcomes),
        "sealed": all(outcome.sealed is not False for outcome in outcomes),
    }


def _rows(board: StandingsPage) -> Iterator[dict[str, Any]]:
    """Rows whose `competition_set` is the same number are about the same competitions, and may be ranked."""
    numbers: dict[frozenset[str], int] = {}
    for slug, found in board.entries.items():
        for scope in found.scopes:
            ids = _competitions(found.entry, scope.kind, scope.name, board.standings.options)
            yield {"entry": slug, **asdict(scope), "competition_set": numbers.setdefault(ids, len(numbers))}


def _competitions(entry: Entry, kind: str, name: str, rules: StandingsOptions) -> frozenset[str]:
    """The competitions that an entry's figures are about."""
    if kind == "split":
        return frozenset(rules.splits[name])
    shown = {id for ids in rules.splits.values() for id in ids} if rules.asked else entry.competitions
    in_scope = (id for id in shown if kind != "category" or (rules.categories.get(id) or "unknown") == name)
    return frozenset(entry.competitions).intersection(in_scope)
