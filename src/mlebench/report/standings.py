"""Turns entries into standings: figures for every split and category, and comparisons. Nothing here reads a file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlebench.records.conditions import unlike
from mlebench.report.found import Found, found_in
from mlebench.report.intervals import Difference, Estimate, Sample, seeds_needed
from mlebench.report.model import Entry
from mlebench.report.published import PublishedEntry
from mlebench.report.spent import Spent

RATES = ("any_medal", "gold", "silver", "bronze", "above_median", "valid", "submitted")
# What figures are multiplied by: rates and percentiles are shown in percent.
SCALES = dict.fromkeys((*RATES, "percentile"), 100.0) | {"normalised": 1.0}
COMPARED = ("any_medal", "normalised")
GIVEN = "given"


@dataclass(frozen=True)
class Scope:
    """The figures of an entry over a set of competitions: a split, a category, or those that were given."""

    kind: str
    name: str
    competitions: int
    seeds: int  # that count
    seeds_given: int
    missing: int  # combinations of competition and seed without a run
    figures: dict[str, Estimate | None]
    spent: Spent


@dataclass(frozen=True)
class Comparison:
    """One entry against another over the competitions that both were run on."""

    one: str
    other: str
    scope: str
    competitions: int
    seeds: tuple[int, int]
    differences: dict[str, Difference | None]
    unlike: dict[str, tuple[str, str]]  # the conditions in which they differ, of both


@dataclass(frozen=True)
class Need:
    """How many seeds it takes to detect a difference in the medal rate, in percent."""

    agents: tuple[str, ...]
    scope: str
    competitions: int
    difference: float
    seeds: int | None


@dataclass(frozen=True)
class EntryStandings:
    entry: Entry
    scopes: list[Scope]
    found: list[Found]  # in the runs of the splits that are shown


@dataclass(frozen=True)
class Rules:
    """Which standings are wanted."""

    splits: Mapping[str, Sequence[str]]
    categories: Mapping[str, str | None]  # of each competition
    pad: bool = False
    asked: bool = False  # the splits were named: they are shown even if incomplete
    power: float | None = None  # a difference of the medal rate, in percent


@dataclass(frozen=True)
class Standings:
    profile: str
    data: str  # twin, real or unknown
    padded: bool
    entries: list[EntryStandings]
    comparisons: list[Comparison]
    needs: list[Need]
    published: list[PublishedEntry]
    rules: Rules


class Grid:
    """The outcomes of an entry by competition and seed: all seeds, padded with failures, or the complete ones."""

    def __init__(self, entry: Entry, competitions: Sequence[str], *, pad: bool):
        place = entry.by_place
        given = sorted({outcome.seed for outcome in entry.of(competitions)})
        rows = {
            seed: [None if (found := place.get((id, seed))) is None or found.missing else found for id in competitions]
            for seed in given
        }
        self.given = len(given)
        self.missing = sum(row.count(None) for row in rows.values())
        self._rows = [row for row in rows.values() if pad or None not in row]
        self.seeds = len(self._rows)

    def known(self, name: str) -> set[int]:
        """The places of the competitions with a known figure; a missing run's counts as known if any other's is."""
        outcomes = [outcome for row in self._rows for outcome in row if outcome is not None]
        if outcomes and all(getattr(outcome, name) is None for outcome in outcomes):
            return set()
        columns = enumerate(zip(*self._rows, strict=True))
        return {
            place
            for place, column in columns
            if all(outcome is None or getattr(outcome, name) is not None for outcome in column)
        }

    def values(self, name: str, places: Iterable[int]) -> NDArray[Any]:
        """One row per competition, one column per seed; missing or negative values count as 0."""
        figures = [[getattr(row[place], name, 0.0) for row in self._rows] for place in sorted(places)]
        return np.clip(np.array(figures, dtype=float), 0, 1)

    def estimate(self, name: str) -> Estimate | None:
        known = self.known(name)
        return Estimate.of(self.values(name, known)).scaled(SCALES[name]) if known else None


def standings(
    entries: Sequence[Entry], rules: Rules, profile: str, data: str, published: Sequence[PublishedEntry] = ()
) -> Standings:
    """The first entry is compared with each of the others."""
    first, others = entries[0], entries[1:]
    comparisons = [found for other in others for found in compare(first, other, rules)]
    return Standings(
        profile=profile,
        data=data,
        padded=rules.pad,
        entries=[EntryStandings(entry, _scopes_of(entry, rules), _found(entry, rules)) for entry in entries],
        comparisons=comparisons,
        needs=[need for other in others or [first] for need in _needs(first, other, rules)],
        published=list(published),
        rules=rules,
    )


def _scopes_of(entry: Entry, rules: Rules) -> list[Scope]:
    splits = _sets(entry.competitions, rules)
    scopes = [_scope("split" if name != GIVEN else GIVEN, name, ids, entry, rules) for name, ids in splits.items()]
    inside = {id for ids in rules.splits.values() for id in ids} if rules.asked else None
    by_category: dict[str, list[str]] = {}
    for id in entry.competitions:
        if inside is None or id in inside:
            by_category.setdefault(rules.categories.get(id) or "unknown", []).append(id)
    return scopes + [_scope("category", name, ids, entry, rules) for name, ids in sorted(by_category.items())]


def _found(entry: Entry, rules: Rules) -> list[Found]:
    shown = {id for ids in _sets(entry.competitions, rules).values() for id in ids}
    return found_in(entry.of(shown), claimed=entry.bundled)


def _sets(competitions: Sequence[str], rules: Rules) -> dict[str, list[str]]:
    """The splits to show for an agent that was run on these competitions, and the competitions themselves.

    A split that was not asked for is shown if the agent was run on all of it, or if missing runs are padded.
    """
    ran = set(competitions)
    found = {
        name: list(ids)
        for name, ids in rules.splits.items()
        if rules.asked or ran >= set(ids) or (rules.pad and ran & set(ids))
    }
    if not rules.asked and all(set(ids) != ran for ids in found.values()):
        found[GIVEN] = list(competitions)
    return found


def _scope(kind: str, name: str, competitions: Sequence[str], entry: Entry, rules: Rules) -> Scope:
    grid = Grid(entry, competitions, pad=rules.pad)
    return Scope(
        kind=kind,
        name=name,
        competitions=len(competitions),
        seeds=grid.seeds,
        seeds_given=grid.given,
        missing=grid.missing,
        figures={figure: grid.estimate(figure) for figure in SCALES},
        spent=Spent.of(entry.of(competitions)),
    )


def _pairs(one: Entry, other: Entry, rules: Rules) -> Iterable[tuple[str, list[str], Grid, Grid]]:
    """The sets of competitions that both were run on."""
    theirs = set(other.competitions)
    common = [id for id in one.competitions if id in theirs]
    for name, ids in _sets(common, rules).items():
        shared = [id for id in ids if rules.pad or id in common]
        if shared:
            yield name, shared, Grid(one, shared, pad=rules.pad), Grid(other, shared, pad=rules.pad)


def compare(one: Entry, other: Entry, rules: Rules) -> Iterator[Comparison]:
    """The first minus the second, over each set of competitions that both were run on."""
    apart = unlike(one.conditions, other.conditions)
    for name, ids, first, second in _pairs(one, other, rules):
        differences = {figure: _difference(first, second, figure) for figure in COMPARED}
        yield Comparison(one.agent, other.agent, name, len(ids), (first.seeds, second.seeds), differences, apart)


def _difference(one: Grid, other: Grid, figure: str) -> Difference | None:
    samples = _samples(one, other, figure)
    return Difference.of(*samples).scaled(SCALES[figure]) if samples else None


def _samples(one: Grid, other: Grid, figure: str) -> tuple[Sample, Sample] | None:
    known = one.known(figure) & other.known(figure)
    return (Sample.of(one.values(figure, known)), Sample.of(other.values(figure, known))) if known else None


def _needs(one: Entry, other: Entry, rules: Rules) -> Iterable[Need]:
    if rules.power is None:
        return
    agents = (one.agent,) if one is other else (one.agent, other.agent)
    for name, ids, first, second in _pairs(one, other, rules):
        samples = _samples(first, second, "any_medal")
        yield Need(agents, name, len(ids), rules.power, seeds_needed(*samples, rules.power / 100) if samples else None)
