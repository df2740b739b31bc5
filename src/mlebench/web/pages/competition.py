"""A competition: the task, how people did, and where our runs stand among them. And a list of all competitions."""

import math
from collections.abc import Iterator
from typing import Any

from mlebench.core.errors import PrerequisiteError
from mlebench.registry import Competition
from mlebench.report.types import Outcome
from mlebench.scoring import Thresholds, read_leaderboard
from mlebench.web.pages.grid import result_of
from mlebench.web.site import Page, Site, StandingsPage, agent_of

CATALOGUE = "competitions.html"
BINS = 60


def paths(site: Site) -> Iterator[str]:
    yield CATALOGUE
    yield from (f"competition/{id}.html" for id in site.competition_ids)


def catalogue(site: Site, path: str) -> Page:
    rows = [_summary(site, competition) for id in site.competition_ids if (competition := site.competition(id))]
    return Page(path, "competitions.html", "Competitions", {"rows": rows})


def page(site: Site, path: str, id: str) -> Page | None:
    competition = site.competition(id)
    if competition is None:
        return None
    board = _leaderboard(competition)
    thresholds = Thresholds.of(board)._asdict() if board else {}
    data = {
        **_facts(competition),
        "thresholds": thresholds,
        "teams": len(board),
        "distribution": _distribution(board, competition.lower_is_better) if board else None,
        "boards": [runs for one in site.boards if (runs := _runs(site, one, id))["agents"]],
        "description": competition.description,
    }
    return Page(path, "competition.html", competition.name, data, live=site.live and _is_open(data))


ROUTES = ((r"competitions\.html", catalogue), (r"competition/([A-Za-z0-9_.-]+)\.html", page))


def _facts(competition: Competition) -> dict[str, Any]:
    sample = competition.sample_score
    return {
        "id": competition.id,
        "name": competition.name,
        "category": competition.category,
        "complexity": competition.complexity,
        "metric": competition.grader.name,
        "lower_is_better": competition.lower_is_better,
        "sample_score": sample if sample is not None and math.isfinite(sample) else None,
        "known_issues": list(competition.known_issues),
        "prepare": competition.prepare_command,
    }


def _summary(site: Site, competition: Competition) -> dict[str, Any]:
    board = _leaderboard(competition)
    return {
        **_facts(competition),
        "teams": len(board),
        "thresholds": Thresholds.of(board)._asdict() if board else None,
        "results": [
            {"board": one.title, "runs": len(outcomes), "best": _best(outcomes)}
            for one in site.boards
            if (outcomes := _outcomes(one, competition.id))
        ],
    }


def _outcomes(board: StandingsPage, id: str) -> list[Outcome]:
    return [outcome for found in board.standings.entries for outcome in found.entry.of([id])]


def _best(outcomes: list[Outcome]) -> str:
    ranks = ("gold", "silver", "bronze", "median", "valid", "invalid", "none", "missing", "open")
    return min((result_of(outcome) for outcome in outcomes), key=ranks.index)


def _leaderboard(competition: Competition) -> list[float]:
    try:
        return [score for score in read_leaderboard(competition.leaderboard) if math.isfinite(score)]
    except PrerequisiteError:
        return []


def _distribution(board: list[float], lower: bool) -> dict[str, Any]:
    """How many teams had which score. The worst twentieth is lumped together, since it may be anywhere."""
    worst_first = sorted(board, reverse=lower)
    start, end = worst_first[len(board) // 20], worst_first[-1]
    width = (end - start) / BINS
    counts = [0] * BINS
    worse = 0
    for score in board:
        if not width:
            counts[-1] += 1
        elif (place := (score - start) / width) < 0:
            worse += 1
        else:
            counts[min(BINS - 1, int(place))] += 1
    return {"from": start, "to": end, "counts": counts, "worse": worse}


def _runs(site: Site, board: StandingsPage, id: str) -> dict[str, Any]:
    agents = []
    for slug, found in board.entries.items():
        outcomes = sorted(found.entry.of([id]), key=lambda outcome: outcome.seed)
        if outcomes:
            runs = [_run(site, outcome) for outcome in outcomes]
            agents.append(agent_of(slug, found.entry) | {"runs": runs})
    agents.sort(key=lambda agent: -max(run["percentile"] or 0 for run in agent["runs"]))
    return {"board": board.name, "title": board.title, "data": board.standings.data, "agents": agents}


def _run(site: Site, outcome: Outcome) -> dict[str, Any]:
    return {
        "seed": outcome.seed,
        "result": result_of(outcome),
        "score": outcome.score,
        "percentile": outcome.percentile,
        "normalised": outcome.normalised,
        "hours": outcome.hours,
        "page": site.run_page(outcome),
    }


def _is_open(data: dict[str, Any]) -> bool:
    return any(run["result"] == "open" for one in data["boards"] for agent in one["agents"] for run in agent["runs"])
