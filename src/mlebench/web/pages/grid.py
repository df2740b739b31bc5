"""Competitions × agents: which medals each agent earned, seed by seed."""

from collections.abc import Iterator
from typing import Any

from mlebench.report.types import Entry, Outcome
from mlebench.web.pages.standings import HOME, no_standings, path_of
from mlebench.web.site import Page, Site, StandingsPage, agent_of

GRID = "grid.html"


def grid_path(site: Site, board: StandingsPage) -> str:
    return GRID if path_of(site, board) == HOME else f"grid/{board.name}.html"


def paths(site: Site) -> Iterator[str]:
    yield from (grid_path(site, board) for board in site.boards)
    if not site.boards:
        yield GRID


def page(site: Site, path: str, name: str | None = None) -> Page | None:
    if not site.boards and path == GRID:
        return no_standings(site, path, "Medal grid")
    board = site.board_named.get(name) if name else next(iter(site.boards), None)
    if board is None or grid_path(site, board) != path:
        return None
    entries = [found.entry for found in board.standings.entries]
    ids = sorted({id for entry in entries for id in entry.competitions}, key=str.lower)
    data = {
        "board": board.name,
        "title": board.title,
        "boards": [{"title": other.title, "path": grid_path(site, other)} for other in site.boards],
        "agents": [agent_of(slug, found.entry) for slug, found in board.entries.items()],
        "rows": [_row(site, id, entries) for id in ids],
    }
    return Page(path, "grid.html", "Medal grid", data, live=site.live)


ROUTES = ((r"grid\.html", page), (r"grid/([a-z0-9-]+)\.html", page))


def _row(site: Site, id: str, entries: list[Entry]) -> dict[str, Any]:
    known = site.competition(id)
    return {
        "competition": id,
        "name": known.name if known else id,
        "category": known.category if known else None,
        "complexity": known.complexity if known else None,
        "known": known is not None,
        "cells": [_cell(site, entry, id) for entry in entries],
    }


def _cell(site: Site, entry: Entry, id: str) -> list[dict[str, Any]]:
    return [
        {
            "seed": outcome.seed,
            "result": result_of(outcome),
            "score": outcome.score,
            "percentile": outcome.percentile,
            "page": site.run_page(outcome),
        }
        for outcome in sorted(entry.of([id]), key=lambda outcome: outcome.seed)
    ]


def result_of(outcome: Outcome) -> str:
    """In one word: a medal, or how far it got."""
    if outcome.missing:
        return "open" if outcome.missing in ("running", "planned") else "missing"
    for word in ("gold", "silver", "bronze", "above_median", "valid", "submitted"):
        if getattr(outcome, word):
            return {"above_median": "median", "submitted": "invalid"}.get(word, word)
    return "none"
