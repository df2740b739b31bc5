"""Two agents, over the competitions that both were run on."""

from collections.abc import Iterable, Iterator

from mlebench.records.conditions import unlike, unlike_text
from mlebench.report.standings import COMPARED, Comparison, compare
from mlebench.report.types import Entry
from mlebench.web.pages.grid import result_of
from mlebench.web.site import Page, Site, StandingsSection
from mlebench.web.views import AgentName, View

INDEX = "compare.html"
ALL_PAIRS = 12  # with more agents, pages on disk compare the first with each of the others


class Pair(View):
    agents: list[str]
    path: str


class Choices(View):
    """The agents of a section, and the pairs that have a page."""

    board: str
    title: str
    agents: list[AgentName]
    pairs: list[Pair]


class CompareIndex(View):
    boards: list[Choices]


class Side(View):
    """What one agent did: each seed's result, and the mean percentile, in percent, of the runs that count."""

    results: list[str]
    percentile: float | None


class CompareRow(View):
    competition: str
    name: str
    known: bool
    sides: list[Side]
    difference: float | None


class CompareView(View):
    board: str
    title: str
    agents: list[AgentName]
    choices: list[AgentName]
    competitions: int
    unlike: str
    comparisons: list[Comparison]
    scales: dict[str, float]
    rows: list[CompareRow]


def paths(site: Site) -> Iterator[str]:
    yield INDEX
    for section in site.sections:
        yield from (_path(section, first, other) for first, other in _pairs(section))


def _path(section: StandingsSection, first: str, other: str) -> str:
    return f"compare/{section.name}/{first}/{other}.html"


def _pairs(section: StandingsSection) -> Iterator[tuple[str, str]]:
    slugs = list(section.entries)
    firsts = slugs if len(slugs) <= ALL_PAIRS else slugs[:1]
    yield from ((first, other) for first in firsts for other in slugs if first != other)


def _once(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each pair once, whichever comes first."""
    seen: set[frozenset[str]] = set()
    for pair in pairs:
        if frozenset(pair) not in seen:
            seen.add(frozenset(pair))
            yield pair


def index(site: Site, path: str) -> Page:
    sections = [
        Choices(
            board=section.name,
            title=section.title,
            agents=_agents(section),
            pairs=[
                Pair(agents=[section.entries[slug].entry.agent for slug in pair], path=_path(section, *pair))
                for pair in _once(_pairs(section))
            ],
        )
        for section in site.sections
    ]
    return Page(path, "compare_index.html", "Compare", CompareIndex(boards=sections))


def page(site: Site, path: str, name: str, one: str, other: str) -> Page | None:
    section = site.section_named.get(name)
    if section is None or one == other or not {one, other} <= section.entries.keys():
        return None
    first, second = section.entries[one].entry, section.entries[other].entry
    theirs = set(second.competitions)
    common = [id for id in first.competitions if id in theirs]
    comparisons = list(compare(first, second, section.standings.options)) if common else []
    view = CompareView(
        board=section.name,
        title=section.title,
        agents=[AgentName.of(one, first), AgentName.of(other, second)],
        choices=_agents(section),
        competitions=len(common),
        unlike=unlike_text(unlike(first.conditions, second.conditions)),
        comparisons=comparisons,
        scales={figure: _scale(comparisons, figure) for figure in COMPARED},
        rows=sorted((_row(site, id, first, second) for id in common), key=lambda row: -(row.difference or 0)),
    )
    return Page(path, "compare.html", f"{first.agent} and {second.agent}", view)


ROUTES = ((r"compare\.html", index), (r"compare/([a-z0-9-]+)/([a-z0-9-]+)/([a-z0-9-]+)\.html", page))


def _agents(section: StandingsSection) -> list[AgentName]:
    return [AgentName.of(slug, row.entry) for slug, row in section.entries.items()]


def _row(site: Site, id: str, first: Entry, second: Entry) -> CompareRow:
    competition = site.competition(id)
    sides = [_side(first, id), _side(second, id)]
    means = [side.percentile for side in sides]
    return CompareRow(
        competition=id,
        name=competition.name if competition else id,
        known=competition is not None,
        sides=sides,
        difference=None if means[0] is None or means[1] is None else means[0] - means[1],
    )


def _side(entry: Entry, id: str) -> Side:
    outcomes = sorted(entry.of([id]), key=lambda outcome: outcome.seed)
    known = [outcome.percentile for outcome in outcomes if outcome.percentile is not None and not outcome.missing]
    return Side(
        results=[result_of(outcome) for outcome in outcomes],
        percentile=100 * sum(known) / len(known) if known else None,
    )


def _scale(comparisons: Iterable[Comparison], figure: str) -> float:
    """How far a drawing must reach to hold the intervals of all comparisons."""
    differences = [difference for comparison in comparisons if (difference := comparison.differences[figure])]
    return 1.1 * max((abs(end) for each in differences for end in (each.low, each.high)), default=1.0) or 1.0
