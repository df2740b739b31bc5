"""How well agents do: a row for each agent under the same conditions, for each split and category."""

from collections.abc import Iterator
from dataclasses import asdict, fields
from itertools import groupby
from typing import Any

from mlebench.records.report import Badge
from mlebench.report.badge_counts import BadgeCount
from mlebench.report.formats import columns, notes, with_recount
from mlebench.report.intervals import LEVEL, Estimate
from mlebench.report.published_standings import PublishedEntry
from mlebench.report.standings import EntryStandings, StandingsOptions
from mlebench.report.types import Entry
from mlebench.report.usage_totals import UsageTotals
from mlebench.web.pages import group
from mlebench.web.site import Page, Site, StandingsSection
from mlebench.web.views import AgentName, Tab, View

HOME = "index.html"


class DifferingCondition(View):
    name: str
    title: str


class ScopeName(View):
    """A choice of competitions, and how many entries have figures for it."""

    kind: str
    name: str
    entries: int


class StandingsRow(View):
    """The figures of an entry; rows with the same `competition_set` are about the same competitions."""

    entry: str
    kind: str
    name: str
    competitions: int
    seeds: int
    seeds_given: int
    missing: int
    withheld: int
    medals: int
    badged: int
    figures: dict[str, Estimate | None]
    spent: UsageTotals
    competition_set: int


class EntryView(AgentName):
    hours_limit: float | None
    conditions: dict[str, Any]  # by name
    condition_texts: dict[str, str]
    stated: bool
    label: list[str]
    pooled: dict[str, list[str]]
    inputs: list[str]
    groups: list[str]
    runs: int
    going_on: int
    planned: int
    sealed: bool


class FindingRow(View):
    agent: str
    share: float
    tool: str
    finding: str
    runs: int
    of: int
    not_inspected: int
    trust: str | None
    not_enough_evidence: int | None


class BadgeRow(View):
    """The badges of an agent's medals in a competition."""

    agent: str
    competition: str
    known: bool  # whether the competition has a page
    medals: int
    badges: list[BadgeCount]


class LeftOutRow(View):
    """A competition that figures `without` badges leave out."""

    competition: str
    known: bool
    badges: list[Badge]


class StandingsView(View):
    board: str
    title: str
    intro: str  # what the first page opens with, or nothing
    boards: list[Tab]
    profile: str
    data: str
    padded: bool
    level: float
    notes: list[str]
    differing: list[DifferingCondition]
    scopes: list[ScopeName]
    rows: list[StandingsRow]
    entries: list[EntryView]
    badges: list[BadgeRow]
    left_out: list[LeftOutRow]
    findings: list[FindingRow]
    published: list[PublishedEntry]


class EmptyView(View):
    """What is shown where there are no standings."""

    boards: list[Tab]
    groups: int
    runs: int


def path_of(site: Site, section: StandingsSection) -> str:
    """The path of a section's standings; those of the first are the front page."""
    return HOME if site.sections and section.name == site.sections[0].name else f"standings/{section.name}.html"


def paths(site: Site) -> Iterator[str]:
    yield from (path_of(site, section) for section in site.sections)
    if not site.sections:
        yield HOME


def page(site: Site, path: str, name: str | None = None) -> Page | None:
    section = site.section_named.get(name) if name else next(iter(site.sections), None)
    if name and (section is None or path_of(site, section) != path):
        return None
    if section is None:
        return no_standings(site, path, "Standings")
    standings = section.standings
    view = StandingsView(
        board=section.name,
        title=section.title,
        intro=site.intro if path == HOME else "",
        boards=[Tab(title=other.title, path=path_of(site, other)) for other in site.sections],
        profile=standings.profile,
        data=standings.data,
        padded=standings.padded,
        level=LEVEL,
        notes=notes(standings),
        differing=[DifferingCondition(name=each.name, title=each.title) for each in columns(standings)],
        scopes=_scope_names(section),
        rows=sorted(_rows(section), key=lambda row: -medals.mean if (medals := row.figures["any_medal"]) else 1),
        entries=[_entry(site, slug, row) for slug, row in section.entries.items()],
        badges=[
            BadgeRow(row.entry.agent, id, site.competition(id) is not None, counts[0].of, counts)
            for row in standings.entries
            for id, badges in groupby(row.badge_counts, key=lambda count: count.competition)
            if (counts := list(badges))
        ],
        left_out=[
            LeftOutRow(
                omission.competition,
                known=site.competition(omission.competition) is not None,
                badges=list(omission.badges),
            )
            for omission in (standings.recount.left_out if standings.recount else ())
        ],
        findings=[
            FindingRow(agent=row.entry.agent, share=count.share, **asdict(count))
            for row in standings.entries
            for count in row.finding_counts
        ],
        published=standings.published,
    )
    going_on = any(
        outcome.missing in ("running", "planned") for row in section.entries.values() for outcome in row.entry.outcomes
    )
    return Page(path, "standings.html", "Standings", view, live=site.live and going_on)


def no_standings(site: Site, path: str, title: str) -> Page:
    """The page that stands in the place of standings as long as there are none."""
    runs = sum(1 for group in site.groups for _ in group.run_paths())
    return Page(path, "empty.html", title, EmptyView(boards=[], groups=len(site.groups), runs=runs))


ROUTES = ((HOME.replace(".", r"\."), page), (r"standings/([a-z0-9-]+)\.html", page))


def _scope_names(section: StandingsSection) -> list[ScopeName]:
    """The choices: splits, those that most agents were run on first, then categories."""
    counts: dict[tuple[str, str], int] = {}
    for standings, without in with_recount(section.standings):
        for scope in (scope for row in standings.entries for scope in row.scopes):
            key = scope.kind, f"{scope.name}{without}"
            counts[key] = counts.get(key, 0) + 1
    kinds = ("split", "given", "category")
    ordered = sorted(
        counts, key=lambda key: (kinds.index(key[0]), -counts[key], key[1] if key[0] == "category" else "")
    )
    return [ScopeName(kind=kind, name=name, entries=counts[kind, name]) for kind, name in ordered]


def _entry(site: Site, slug: str, row: EntryStandings) -> EntryView:
    entry = row.entry
    outcomes = entry.outcomes
    agent = AgentName.of(slug, entry)
    return EntryView(
        slug=agent.slug,
        agent=agent.agent,
        name=entry.name or entry.agent,
        model=agent.model,
        model_beside=agent.model_beside,
        hours_limit=entry.hours_limit,
        conditions=entry.conditions.values,
        condition_texts=entry.conditions.texts,
        stated=entry.conditions.are_stated,
        label=list(entry.label.conditions),
        pooled=entry.conditions.pooled,
        inputs=list(entry.inputs),
        groups=[group.path_of(folder) for id in entry.inputs if (folder := site.folder_of_group.get(id))],
        runs=len(outcomes),
        going_on=sum(outcome.missing == "running" for outcome in outcomes),
        planned=sum(outcome.missing == "planned" for outcome in outcomes),
        sealed=all(outcome.sealed is not False for outcome in outcomes),
    )


def _rows(section: StandingsSection) -> Iterator[StandingsRow]:
    """Rows whose `competition_set` is the same number are about the same competitions, and may be ranked."""
    numbers: dict[frozenset[str], int] = {}
    for standings, without in with_recount(section.standings):
        for slug, row in zip(section.entries, standings.entries, strict=True):
            for scope in row.scopes:
                ids = _competitions(row.entry, scope.kind, scope.name, standings.options)
                figures = {each.name: getattr(scope, each.name) for each in fields(scope)}
                figures["name"] += without
                yield StandingsRow(entry=slug, **figures, competition_set=numbers.setdefault(ids, len(numbers)))


def _competitions(entry: Entry, kind: str, name: str, rules: StandingsOptions) -> frozenset[str]:
    """The competitions that an entry's figures are about."""
    if kind == "split":
        return frozenset(rules.splits[name]) - rules.left_out
    shown = {id for ids in rules.splits.values() for id in ids} if rules.asked else entry.competitions
    in_scope = (id for id in shown if kind != "category" or (rules.categories.get(id) or "unknown") == name)
    return frozenset(entry.competitions).intersection(in_scope) - rules.left_out
