"""A competition: the task, how people did, and where our runs stand among them. And a list of all competitions."""

import math
from collections.abc import Iterator

import msgspec

from mlebench.config import KnownIssue
from mlebench.core.errors import PrerequisiteError
from mlebench.registry import Competition
from mlebench.report.types import RunOutcome
from mlebench.scoring import Thresholds, read_leaderboard
from mlebench.web.pages.grid import result_of
from mlebench.web.site import Page, Site, StandingsSection
from mlebench.web.views import AgentName, AgentRuns, Distribution, RunResult, View

CATALOGUE = "competitions.html"
BINS = 60
BEST_FIRST = ("gold", "silver", "bronze", "median", "valid", "invalid", "none", "missing", "open")


class CompetitionFacts(View):
    id: str
    name: str
    category: str | None
    complexity: str | None
    metric: str
    lower_is_better: bool
    sample_score: float | None
    known_issues: list[KnownIssue]
    prepare: str


class BestResult(View):
    """The best of our runs in a section."""

    board: str
    runs: int
    best: str


class CompetitionRow(CompetitionFacts):
    teams: int
    thresholds: dict[str, float] | None
    results: list[BestResult]


class Catalogue(View):
    rows: list[CompetitionRow]


class SectionRuns(View):
    """The runs of a section on a competition."""

    board: str
    title: str
    data: str
    agents: list[AgentRuns]


class CompetitionView(CompetitionFacts):
    thresholds: dict[str, float]
    teams: int
    distribution: Distribution | None
    boards: list[SectionRuns]
    description: str


def paths(site: Site) -> Iterator[str]:
    yield CATALOGUE
    yield from (f"competition/{id}.html" for id in site.competition_ids)


def catalogue(site: Site, path: str) -> Page:
    rows = [_summary(site, competition) for id in site.competition_ids if (competition := site.competition(id))]
    return Page(path, "competitions.html", "Competitions", Catalogue(rows=rows))


def page(site: Site, path: str, id: str) -> Page | None:
    competition = site.competition(id)
    if competition is None:
        return None
    scores = _leaderboard(competition)
    boards = [runs for section in site.sections if (runs := _runs(site, section, id)).agents]
    is_open = any(run.result == "open" for runs in boards for agent in runs.agents for run in agent.runs)
    view = CompetitionView(
        **msgspec.structs.asdict(_facts(competition)),
        thresholds=Thresholds.of(scores)._asdict() if scores else {},
        teams=len(scores),
        distribution=_distribution(scores, competition.lower_is_better) if scores else None,
        boards=boards,
        description=competition.description,
    )
    return Page(path, "competition.html", competition.name, view, live=site.live and is_open)


ROUTES = ((r"competitions\.html", catalogue), (r"competition/([A-Za-z0-9_.-]+)\.html", page))


def _facts(competition: Competition) -> CompetitionFacts:
    sample = competition.sample_score
    return CompetitionFacts(
        id=competition.id,
        name=competition.name,
        category=competition.category,
        complexity=competition.complexity,
        metric=competition.grader.name,
        lower_is_better=competition.lower_is_better,
        sample_score=sample if sample is not None and math.isfinite(sample) else None,
        known_issues=list(competition.known_issues),
        prepare=competition.prepare_command,
    )


def _summary(site: Site, competition: Competition) -> CompetitionRow:
    scores = _leaderboard(competition)
    return CompetitionRow(
        **msgspec.structs.asdict(_facts(competition)),
        teams=len(scores),
        thresholds=Thresholds.of(scores)._asdict() if scores else None,
        results=list(_best_results(site, competition.id)),
    )


def _best_results(site: Site, id: str) -> Iterator[BestResult]:
    for section in site.sections:
        if results := [result_of(run) for row in section.standings.entries for run in row.entry.of([id])]:
            yield BestResult(board=section.title, runs=len(results), best=min(results, key=BEST_FIRST.index))


def _leaderboard(competition: Competition) -> list[float]:
    try:
        return [score for score in read_leaderboard(competition.leaderboard) if math.isfinite(score)]
    except PrerequisiteError:
        return []


def _distribution(scores: list[float], lower: bool) -> Distribution:
    """How many teams had which score. The worst twentieth is lumped together, since it may be anywhere."""
    worst_first = sorted(scores, reverse=lower)
    start, end = worst_first[len(scores) // 20], worst_first[-1]
    width = (end - start) / BINS
    counts = [0] * BINS
    worse = 0
    for score in scores:
        if not width:
            counts[-1] += 1
        elif (bin := (score - start) / width) < 0:
            worse += 1
        else:
            counts[min(BINS - 1, int(bin))] += 1
    return Distribution(start=start, end=end, counts=counts, worse=worse)


def _runs(site: Site, section: StandingsSection, id: str) -> SectionRuns:
    agents = []
    for slug, row in section.entries.items():
        outcomes = sorted(row.entry.of([id]), key=lambda outcome: outcome.seed)
        if outcomes:
            name = msgspec.structs.asdict(AgentName.of(slug, row.entry))
            agents.append(AgentRuns(**name, runs=[_run(site, outcome) for outcome in outcomes]))
    agents.sort(key=lambda agent: -max(run.percentile or 0 for run in agent.runs))
    return SectionRuns(board=section.name, title=section.title, data=section.standings.data, agents=agents)


def _run(site: Site, outcome: RunOutcome) -> RunResult:
    return RunResult(
        seed=outcome.seed,
        result=result_of(outcome),
        score=outcome.score,
        percentile=outcome.percentile,
        normalised=outcome.normalised,
        hours=outcome.hours,
        badges=list(outcome.badges) if outcome.any_medal else [],
        page=site.run_page(outcome),
    )
