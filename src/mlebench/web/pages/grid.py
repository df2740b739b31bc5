"""Competitions × agents: which medals each agent earned, seed by seed."""

from collections.abc import Iterator

from mlebench.report.types import Entry, RunOutcome
from mlebench.web.pages.standings import HOME, no_standings, path_of
from mlebench.web.site import Page, Site, StandingsSection
from mlebench.web.views import AgentName, Tab, View

GRID = "grid.html"


class GridCell(View):
    """One run."""

    seed: int
    result: str
    score: float | None
    percentile: float | None
    page: str | None


class GridRow(View):
    competition: str
    name: str
    category: str | None
    complexity: str | None
    known: bool
    cells: list[list[GridCell]]  # for each agent


class GridView(View):
    board: str
    title: str
    boards: list[Tab]
    agents: list[AgentName]
    rows: list[GridRow]


def grid_path(site: Site, section: StandingsSection) -> str:
    return GRID if path_of(site, section) == HOME else f"grid/{section.name}.html"


def paths(site: Site) -> Iterator[str]:
    yield from (grid_path(site, section) for section in site.sections)
    if not site.sections:
        yield GRID


def page(site: Site, path: str, name: str | None = None) -> Page | None:
    if not site.sections and path == GRID:
        return no_standings(site, path, "Medal grid")
    section = site.section_named.get(name) if name else next(iter(site.sections), None)
    if section is None or grid_path(site, section) != path:
        return None
    entries = [row.entry for row in section.standings.entries]
    ids = sorted({id for entry in entries for id in entry.competitions}, key=str.lower)
    view = GridView(
        board=section.name,
        title=section.title,
        boards=[Tab(title=other.title, path=grid_path(site, other)) for other in site.sections],
        agents=[AgentName.of(slug, row.entry) for slug, row in section.entries.items()],
        rows=[_row(site, id, entries) for id in ids],
    )
    return Page(path, "grid.html", "Medal grid", view, live=site.live)


ROUTES = ((r"grid\.html", page), (r"grid/([a-z0-9-]+)\.html", page))


def _row(site: Site, id: str, entries: list[Entry]) -> GridRow:
    competition = site.competition(id)
    return GridRow(
        competition=id,
        name=competition.name if competition else id,
        category=competition.category if competition else None,
        complexity=competition.complexity if competition else None,
        known=competition is not None,
        cells=[_cells(site, entry, id) for entry in entries],
    )


def _cells(site: Site, entry: Entry, id: str) -> list[GridCell]:
    return [
        GridCell(
            seed=outcome.seed,
            result=result_of(outcome),
            score=outcome.score,
            percentile=outcome.percentile,
            page=site.run_page(outcome),
        )
        for outcome in sorted(entry.of([id]), key=lambda outcome: outcome.seed)
    ]


def result_of(outcome: RunOutcome) -> str:
    """In one word: a medal, or how far it got."""
    if outcome.missing:
        return "open" if outcome.missing in ("running", "planned") else "missing"
    for word in ("gold", "silver", "bronze", "above_median", "valid", "submitted"):
        if getattr(outcome, word):
            return {"above_median": "median", "submitted": "invalid"}.get(word, word)
    return "none"
