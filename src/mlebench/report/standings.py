"""Makes standings: figures of every entry for every split and category, and comparisons."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.records.conditions import unlike, unlike_text
from mlebench.records.run_groups import Group
from mlebench.registry import Registry
from mlebench.report.competition_lookup import CompetitionLookup
from mlebench.report.finding_counts import FindingCount, count_findings
from mlebench.report.inputs import Inputs, one_kind
from mlebench.report.intervals import Estimate, MeanDifference, Sample, seeds_needed
from mlebench.report.published_standings import PublishedEntry, published_entries
from mlebench.report.types import SPLITS, TWIN, Entry
from mlebench.report.usage_totals import UsageTotals

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
    withheld: int  # competitions whose medals are all withheld: they count in no rate of medals
    figures: dict[str, Estimate | None]
    spent: UsageTotals


@dataclass(frozen=True)
class Comparison:
    """One entry against another over the competitions that both were run on."""

    one: str
    other: str
    scope: str
    competitions: int
    seeds: tuple[int, int]
    differences: dict[str, MeanDifference | None]
    unlike: dict[str, tuple[str, str]]  # the conditions in which they differ, of both


@dataclass(frozen=True)
class SeedsNeeded:
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
    finding_counts: list[FindingCount]  # in the runs of the splits that are shown


@dataclass(frozen=True)
class StandingsOptions:
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
    needs: list[SeedsNeeded]
    published: list[PublishedEntry]
    options: StandingsOptions


class OutcomeMatrix:
    """The outcomes of an entry by competition and seed: all seeds, padded with failures, or the complete ones."""

    def __init__(self, entry: Entry, competitions: Sequence[str], *, pad: bool):
        results = {key: outcome for key, outcome in entry.outcome_of.items() if not outcome.missing}
        seeds = sorted({outcome.seed for outcome in entry.of(competitions)})
        rows = {seed: [results.get((id, seed)) for id in competitions] for seed in seeds}
        self.given = len(seeds)
        self.missing = sum(row.count(None) for row in rows.values())
        self._rows = [row for row in rows.values() if pad or None not in row]
        self.seeds = len(self._rows)

    def known(self, name: str) -> set[int]:
        """The columns (competitions) whose figure is known; a missing run's counts as known if any other's is."""
        outcomes = [outcome for row in self._rows for outcome in row if outcome is not None]
        if outcomes and all(getattr(outcome, name) is None for outcome in outcomes):
            return set()
        columns = enumerate(zip(*self._rows, strict=True))
        return {
            number
            for number, column in columns
            if all(outcome is None or getattr(outcome, name) is not None for outcome in column)
        }

    def values(self, name: str, columns: Iterable[int]) -> NDArray[Any]:
        """One row per competition, one column per seed; missing or negative values count as 0."""
        figures = [[getattr(row[number], name, 0.0) for row in self._rows] for number in sorted(columns)]
        return np.clip(np.array(figures, dtype=float), 0, 1)

    def estimate(self, name: str) -> Estimate | None:
        known = self.known(name)
        return Estimate.of(self.values(name, known)).scaled(SCALES[name]) if known else None


def make_standings(
    inputs: Inputs | Iterable[Group | Path | str],
    split: str | None = None,
    *,
    pad: bool = False,
    power: float | None = None,
    published: bool = False,
    strict: bool = False,
) -> Standings:
    """Return the standings over run groups, bundles and grading reports, which `mlebench report` shows.

    `split` limits them to the competitions of a split, `pad` counts missing runs as failures, and `power` is a
    difference in percentage points for which the seeds needed are computed. `published` adds the published leaderboard,
    which is of real data and profile v1; `strict` refuses to compare or pool runs under unlike conditions.

    Raises PrerequisiteError for inputs that cannot be read, hold no runs, or may not be in one table.
    """
    inputs = inputs if isinstance(inputs, Inputs) else _collected(inputs)
    reported_runs = inputs.reported_runs()
    if not reported_runs:
        raise PrerequisiteError("the given inputs hold no runs")
    profile, data = one_kind(reported_runs)
    if published and (data == TWIN or profile != "v1"):
        raise PrerequisiteError("published figures are of real data and profile v1: they are not shown beside others")
    registry = Registry(profile=profile)
    lookup = CompetitionLookup(registry)
    entries = inputs.entries(lookup)
    if strict:
        _refuse_unlike(entries)
    options = StandingsOptions(
        splits={name: registry.get_split(name) for name in ([split] if split else SPLITS)},
        categories={id: lookup.category(id) for entry in entries for id in entry.competitions},
        pad=pad,
        asked=split is not None,
        power=power,
    )
    return compute_standings(entries, options, profile, data, published_entries() if published else ())


def _collected(inputs: Iterable[Group | Path | str]) -> Inputs:
    collected = Inputs(paths.default_runs_dir(paths.default_data_dir()))
    for source in inputs:
        collected.add(source)
    return collected


def _refuse_unlike(entries: Sequence[Entry]) -> None:
    first = entries[0]
    for entry in entries:
        if apart := unlike(first.conditions, entry.conditions):
            raise PrerequisiteError(
                f"--strict: {first.agent} and {entry.agent} were run under unlike conditions: {unlike_text(apart)}"
            )
        if pooled := entry.conditions.pooled_text:
            raise PrerequisiteError(
                f"--strict: the runs of {entry.agent} are pooled over {pooled}: report on them separately"
            )


def compute_standings(
    entries: Sequence[Entry],
    options: StandingsOptions,
    profile: str,
    data: str,
    published: Sequence[PublishedEntry] = (),
) -> Standings:
    """The standings of entries; the first is compared with each of the others."""
    first, rest = entries[0], entries[1:]
    comparisons = [comparison for second in rest for comparison in compare(first, second, options)]
    return Standings(
        profile=profile,
        data=data,
        padded=options.pad,
        entries=[
            EntryStandings(entry, _scopes_of(entry, options), _finding_counts(entry, options)) for entry in entries
        ],
        comparisons=comparisons,
        needs=[need for second in rest or [first] for need in _needs(first, second, options)],
        published=list(published),
        options=options,
    )


def _scopes_of(entry: Entry, options: StandingsOptions) -> list[Scope]:
    splits = _sets(entry.competitions, options)
    scopes = [_scope("split" if name != GIVEN else GIVEN, name, ids, entry, options) for name, ids in splits.items()]
    inside = {id for ids in options.splits.values() for id in ids} if options.asked else None
    by_category: dict[str, list[str]] = {}
    for id in entry.competitions:
        if inside is None or id in inside:
            by_category.setdefault(options.categories.get(id) or "unknown", []).append(id)
    return scopes + [_scope("category", name, ids, entry, options) for name, ids in sorted(by_category.items())]


def _finding_counts(entry: Entry, options: StandingsOptions) -> list[FindingCount]:
    shown = {id for ids in _sets(entry.competitions, options).values() for id in ids}
    return count_findings(entry.of(shown), claimed=entry.bundled)


def _sets(competitions: Sequence[str], options: StandingsOptions) -> dict[str, list[str]]:
    """The splits to show for an agent that was run on these competitions, and the competitions themselves.

    A split that was not asked for is shown if the agent was run on all of it, or if missing runs are padded.
    """
    ran = set(competitions)
    found = {
        name: list(ids)
        for name, ids in options.splits.items()
        if options.asked or ran >= set(ids) or (options.pad and ran & set(ids))
    }
    if not options.asked and all(set(ids) != ran for ids in found.values()):
        found[GIVEN] = list(competitions)
    return found


def _scope(kind: str, name: str, competitions: Sequence[str], entry: Entry, options: StandingsOptions) -> Scope:
    matrix = OutcomeMatrix(entry, competitions, pad=options.pad)
    return Scope(
        kind=kind,
        name=name,
        competitions=len(competitions),
        seeds=matrix.seeds,
        seeds_given=matrix.given,
        missing=matrix.missing,
        withheld=len(set(range(len(competitions))) - matrix.known("any_medal")) if matrix.seeds else 0,
        figures={figure: matrix.estimate(figure) for figure in SCALES},
        spent=UsageTotals.of(entry.of(competitions)),
    )


def _pairs(
    one: Entry, other: Entry, options: StandingsOptions
) -> Iterable[tuple[str, list[str], OutcomeMatrix, OutcomeMatrix]]:
    """The sets of competitions that both were run on."""
    theirs = set(other.competitions)
    common = [id for id in one.competitions if id in theirs]
    for name, ids in _sets(common, options).items():
        shared = [id for id in ids if options.pad or id in common]
        if shared:
            yield (
                name,
                shared,
                OutcomeMatrix(one, shared, pad=options.pad),
                OutcomeMatrix(other, shared, pad=options.pad),
            )


def compare(one: Entry, other: Entry, options: StandingsOptions) -> Iterator[Comparison]:
    """The first minus the second, over each set of competitions that both were run on."""
    apart = unlike(one.conditions, other.conditions)
    for name, ids, first, second in _pairs(one, other, options):
        differences = {figure: _difference(first, second, figure) for figure in COMPARED}
        yield Comparison(one.agent, other.agent, name, len(ids), (first.seeds, second.seeds), differences, apart)


def _difference(one: OutcomeMatrix, other: OutcomeMatrix, figure: str) -> MeanDifference | None:
    samples = _samples(one, other, figure)
    return MeanDifference.of(*samples).scaled(SCALES[figure]) if samples else None


def _samples(one: OutcomeMatrix, other: OutcomeMatrix, figure: str) -> tuple[Sample, Sample] | None:
    known = one.known(figure) & other.known(figure)
    return (Sample.of(one.values(figure, known)), Sample.of(other.values(figure, known))) if known else None


def _needs(one: Entry, other: Entry, options: StandingsOptions) -> Iterable[SeedsNeeded]:
    if options.power is None:
        return
    agents = (one.agent,) if one is other else (one.agent, other.agent)
    for name, ids, first, second in _pairs(one, other, options):
        samples = _samples(first, second, "any_medal")
        yield SeedsNeeded(
            agents, name, len(ids), options.power, seeds_needed(*samples, options.power / 100) if samples else None
        )
