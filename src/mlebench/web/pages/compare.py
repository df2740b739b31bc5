"""Two agents, over the competitions that both were run on."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from mlebench.records.conditions import unlike, unlike_text
from mlebench.report.standings import COMPARED, compare
from mlebench.report.types import Entry
from mlebench.web.pages.grid import result_of
from mlebench.web.site import Page, Site, StandingsPage, agent_of

INDEX = "compare.html"
ALL_PAIRS = 12  # with more agents, pages on disk compare the first with each of the others


def paths(site: Site) -> Iterator[str]:
    yield INDEX
    for board in site.boards:
        yield from (_path(board, one, other) for one, other in _pairs(board))


def _path(board: StandingsPage, one: str, other: str) -> str:
    return f"compare/{board.name}/{one}/{other}.html"


def _pairs(board: StandingsPage) -> Iterator[tuple[str, str]]:
    slugs = list(board.entries)
    firsts = slugs if len(slugs) <= ALL_PAIRS else slugs[:1]
    yield from ((one, other) for one in firsts for other in slugs if one != other)


def _once(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each pair once, whichever comes first."""
    seen: set[frozenset[str]] = set()
    for pair in pairs:
        if frozenset(pair) not in seen:
            seen.add(frozenset(pair))
            yield pair


def _names(board: StandingsPage, *slugs: str) -> list[str]:
    return [board.entries[slug].entry.agent for slug in slugs]


def index(site: Site, path: str) -> Page:
    boards = [
        {
            "board": board.name,
            "title": board.title,
            "agents": [_agent(slug, board) for slug in board.entries],
            "pairs": [{"agents": _names(board, *pair), "path": _path(board, *pair)} for pair in _once(_pairs(board))],
        }
        for board in site.boards
    ]
    return Page(path, "compare_index.html", "Compare", {"boards": boards})


def page(site: Site, path: str, name: str, one: str, other: str) -> Page | None:
    board = site.board_named.get(name)
    if board is None or one == other or not {one, other} <= board.entries.keys():
        return None
    first, second = board.entries[one].entry, board.entries[other].entry
    theirs = set(second.competitions)
    common = [id for id in first.competitions if id in theirs]
    compared = [asdict(comparison) for comparison in compare(first, second, board.standings.options)] if common else []
    data = {
        "board": board.name,
        "title": board.title,
        "agents": [_agent(one, board), _agent(other, board)],
        "choices": [_agent(slug, board) for slug in board.entries],
        "competitions": len(common),
        "unlike": unlike_text(unlike(first.conditions, second.conditions)),
        "comparisons": compared,
        "scales": {figure: _scale(compared, figure) for figure in COMPARED},
        "rows": sorted((_row(site, id, first, second) for id in common), key=lambda row: -(row["difference"] or 0)),
    }
    return Page(path, "compare.html", f"{first.agent} and {second.agent}", data)


ROUTES = ((r"compare\.html", index), (r"compare/([a-z0-9-]+)/([a-z0-9-]+)/([a-z0-9-]+)\.html", page))


def _agent(slug: str, board: StandingsPage) -> dict[str, Any]:
    return agent_of(slug, board.entries[slug].entry)


def _row(site: Site, id: str, one: Entry, other: Entry) -> dict[str, Any]:
    known = site.competition(id)
    sides = [_side(one, id), _side(other, id)]
    means = [side["percentile"] for side in sides]
    return {
        "competition": id,
        "name": known.name if known else id,
        "known": known is not None,
        "sides": sides,
        "difference": None if None in means else means[0] - means[1],
    }


def _side(entry: Entry, id: str) -> dict[str, Any]:
    """What one agent did: each seed's result, and the mean percentile in percent, of the runs that count."""
    outcomes = sorted(entry.of([id]), key=lambda outcome: outcome.seed)
    known = [outcome.percentile for outcome in outcomes if outcome.percentile is not None and not outcome.missing]
    return {
        "results": [result_of(outcome) for outcome in outcomes],
        "percentile": 100 * sum(known) / len(known) if known else None,
    }


def _scale(compared: list[dict[str, Any]], figure: str) -> float:
    """How far a drawing must reach to hold the intervals of all comparisons."""
    found = [one["differences"][figure] for one in compared if one["differences"][figure]]
    return 1.1 * max((abs(one[end]) for one in found for end in ("low", "high")), default=1.0) or 1.0
