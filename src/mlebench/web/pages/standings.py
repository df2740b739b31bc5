"""How well agents do: a row for each agent under the same conditions, for each split and category."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from mlebench.report.intervals import LEVEL
from mlebench.report.render import notes
from mlebench.report.standings import EntryStandings
from mlebench.web.site import Board, Page, Site

HOME = "index.html"
CONDITIONS = ("network", "description", "knowledge")  # which bare reports do not state


def path_of(site: Site, board: Board) -> str:
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
        return Page(path, "empty.html", "Standings", {"boards": []})
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
        "scopes": _scope_names(board),
        "rows": sorted(
            _rows(board), key=lambda row: -row["figures"]["any_medal"]["mean"] if row["figures"]["any_medal"] else 1
        ),
        "entries": [_entry(slug, found) for slug, found in board.entries.items()],
        "findings": [
            {"agent": found.entry.agent, "share": one.share, **asdict(one)}
            for found in standings.entries
            for one in found.found
        ],
        "published": [asdict(one) for one in standings.published],
    }
    going_on = any(
        outcome.missing in ("running", "planned") for row in board.entries.values() for outcome in row.entry.outcomes
    )
    return Page(path, "standings.html", "Standings", data, live=site.live and going_on)


ROUTES = ((HOME.replace(".", r"\."), page), (r"standings/([a-z0-9-]+)\.html", page))


def _scope_names(board: Board) -> list[dict[str, Any]]:
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


def _entry(slug: str, found: EntryStandings) -> dict[str, Any]:
    entry = found.entry
    outcomes = entry.outcomes
    return {
        "slug": slug,
        "agent": entry.agent,
        "name": entry.name or entry.agent,
        "model": entry.model,
        "hours_limit": entry.hours_limit,
        "conditions": dict.fromkeys(CONDITIONS) | entry.conditions,
        "inputs": list(entry.inputs),
        "runs": len(outcomes),
        "going_on": sum(outcome.missing == "running" for outcome in outcomes),
        "planned": sum(outcome.missing == "planned" for outcome in outcomes),
        "sealed": all(outcome.sealed is not False for outcome in outcomes),
    }


def _rows(board: Board) -> Iterator[dict[str, Any]]:
    for slug, found in board.entries.items():
        yield from ({"entry": slug, **asdict(scope)} for scope in found.scopes)
