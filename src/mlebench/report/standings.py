"""Makes standings: figures of every entry for every split and category, and comparisons."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlebench.core import paths
from mlebench.core.errors import PrerequisiteError
from mlebench.grade.badges import LOW_POWER
from mlebench.records.conditions import unlike, unlike_text
from mlebench.records.report import BADGES, Badge
from mlebench.records.run_groups import Group
from mlebench.registry import Registry
from mlebench.report.badge_counts import BadgeCount, count_badges
from mlebench.report.competition_lookup import CompetitionLookup
from mlebench.report.finding_counts import FindingCount, count_findings
from mlebench.report.inputs import Inputs, one_kind
from mlebench.report.intervals import Estimate, MeanDifference, Sample, seeds_needed
from mlebench.report.published_standings import PublishedEntry, published_entries
from mlebench.report.types import SPLITS, TWIN, Entry, RunOutcome
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
    medals: int  # in the seeds that count
    badged: int  # those of them with a badge
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
    badge_counts: list[BadgeCount]  # in the same runs


@dataclass(frozen=True)
class StandingsOptions:
    """Which standings are wanted."""

    splits: Mapping[str, Sequence[str]]
    categories: Mapping[str, str | None]  # of each competition
    pad: bool = False
    asked: bool = False  # the splits were named: they are shown even if incomplete
    power: float | None = None  # a difference of the medal rate, in percent
    left_out: frozenset[str] = frozenset()  # competitions that count in no figure


@dataclass(frozen=True)
class LeftOut:
    """A competition that a recount leaves out, and why."""

    competition: str
    badges: tuple[Badge, ...]


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
    recount: "Recount | None" = None


@dataclass(frozen=True)
class Recount:
    """The standings again, without the competitions that have certain badges."""

    without: tuple[str, ...]  # of BADGES
    left_out: list[LeftOut]
    unsized: list[str]  # `low_power`: competitions that count, although no report says how many test units they have
    standings: Standings


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

    @property
    def medals(self) -> list[RunOutcome]:
        """The runs that earned one."""
        return [outcome for row in self._rows for outcome in row if outcome is not None and outcome.any_medal]

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
    without: Collection[str] = (),
) -> Standings:
    """Return the standings over run groups, bundles and grading reports, which `mlebench report` shows.

    `split` limits them to the competitions of a split, `pad` counts missing runs as failures, and `power` is a
    difference in percentage points for which the seeds needed are computed. `published` adds the published leaderboard,
    which is of real data and profile v1; `strict` refuses to compare or pool runs under unlike conditions. With
    `without`, kinds of badges, `recount` holds the standings again without the competitions that have these.

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
    standings = compute_standings(entries, options, profile, data, published_entries() if published else ())
    return replace(standings, recount=recount(standings, without)) if without else standings


def recount(standings: Standings, without: Collection[str]) -> Recount:
    """Return the standings again without the competitions that have badges of some kinds, such as `leak`.

    A competition is left out of all entries alike: if this mlebench knows of such an issue in it, or if a score of any
    entry has such a badge. Splits and comparisons are those of `standings`.

    Raises PrerequisiteError for an unknown kind, or if no competition remains.
    """
    if unknown := sorted(set(without) - set(BADGES)):
        raise PrerequisiteError(f"there are no badges {', '.join(unknown)}; there are {', '.join(BADGES)}")
    without = tuple(kind for kind in BADGES if kind in without)
    shown = {
        id: None for row in standings.entries for id in _shown_competitions(row.entry.competitions, standings.options)
    }
    entries = [row.entry for row in standings.entries]
    lookup = CompetitionLookup(Registry(profile=standings.profile))
    left_out = []
    for id in shown:
        badges = [*lookup.competition_badges(id), *(badge for entry in entries for badge in _badges_in(entry, id))]
        if why := {badge.label: badge for badge in badges if badge.kind in without}:
            left_out.append(LeftOut(id, tuple(why.values())))
    ids = frozenset(omission.competition for omission in left_out)
    if not ids < shown.keys():
        raise PrerequisiteError(f"every competition has a badge of {', '.join(without)}: without them, nothing is left")
    sized = {outcome.competition for entry in entries for outcome in entry.outcomes if outcome.test_units is not None}
    return Recount(
        without=without,
        left_out=left_out,
        unsized=[id for id in shown if id not in ids | sized] if LOW_POWER in without else [],
        standings=compute_standings(
            entries, replace(standings.options, left_out=ids), standings.profile, standings.data
        ),
    )


def _badges_in(entry: Entry, competition: str) -> Iterator[Badge]:
    for outcome in entry.of([competition]):
        yield from outcome.badges


def _shown_competitions(competitions: Sequence[str], options: StandingsOptions) -> list[str]:
    return list(dict.fromkeys(id for ids in _sets(competitions, options).values() for id in ids))


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
            EntryStandings(
                entry,
                scopes=_scopes_of(entry, options),
                finding_counts=count_findings(runs, claimed=entry.bundled),
                badge_counts=count_badges(runs),
            )
            for entry in entries
            for runs in [entry.of(_shown_competitions(entry.competitions, options))]
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
        if (inside is None or id in inside) and id not in options.left_out:
            by_category.setdefault(options.categories.get(id) or "unknown", []).append(id)
    return scopes + [_scope("category", name, ids, entry, options) for name, ids in sorted(by_category.items())]


def _sets(competitions: Sequence[str], options: StandingsOptions) -> dict[str, list[str]]:
    """The splits to show for an agent that was run on these competitions, and the competitions themselves.

    A split that was not asked for is shown if the agent was run on all of it, or if missing runs are padded. What is
    left out is taken away after that, so that a recount shows the same splits.
    """
    ran = set(competitions)
    splits = {
        name: list(ids)
        for name, ids in options.splits.items()
        if options.asked or ran >= set(ids) or (options.pad and ran & set(ids))
    }
    if not options.asked and all(set(ids) != ran for ids in splits.values()):
        splits[GIVEN] = list(competitions)
    counted = {name: [id for id in ids if id not in options.left_out] for name, ids in splits.items()}
    return {name: ids for name, ids in counted.items() if ids or not options.left_out}


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
        medals=len(matrix.medals),
        badged=sum(bool(outcome.badges) for outcome in matrix.medals),
        figures={figure: matrix.estimate(figure) for figure in SCALES},
        spent=UsageTotals.of(entry.of(competitions)),
    )


def _pairs(
    entry: Entry, other: Entry, options: StandingsOptions
) -> Iterable[tuple[str, list[str], OutcomeMatrix, OutcomeMatrix]]:
    """The sets of competitions that both were run on, each with its name and the outcomes of both entries."""
    theirs = set(other.competitions)
    common = [id for id in entry.competitions if id in theirs]
    for name, ids in _sets(common, options).items():
        shared = [id for id in ids if options.pad or id in common]
        if shared:
            yield (
                name,
                shared,
                OutcomeMatrix(entry, shared, pad=options.pad),
                OutcomeMatrix(other, shared, pad=options.pad),
            )


def compare(one: Entry, other: Entry, options: StandingsOptions) -> Iterator[Comparison]:
    """The first minus the second, over each set of competitions that both were run on."""
    apart = unlike(one.conditions, other.conditions)
    for name, ids, first, second in _pairs(one, other, options):
        differences = {figure: _difference(first, second, figure) for figure in COMPARED}
        yield Comparison(one.agent, other.agent, name, len(ids), (first.seeds, second.seeds), differences, apart)


def _difference(matrix: OutcomeMatrix, other: OutcomeMatrix, figure: str) -> MeanDifference | None:
    samples = _samples(matrix, other, figure)
    return MeanDifference.of(*samples).scaled(SCALES[figure]) if samples else None


def _samples(matrix: OutcomeMatrix, other: OutcomeMatrix, figure: str) -> tuple[Sample, Sample] | None:
    known = matrix.known(figure) & other.known(figure)
    return (Sample.of(matrix.values(figure, known)), Sample.of(other.values(figure, known))) if known else None


def _needs(entry: Entry, other: Entry, options: StandingsOptions) -> Iterable[SeedsNeeded]:
    if options.power is None:
        return
    agents = (entry.agent,) if entry is other else (entry.agent, other.agent)
    for name, ids, first, second in _pairs(entry, other, options):
        samples = _samples(first, second, "any_medal")
        yield SeedsNeeded(
            agents, name, len(ids), options.power, seeds_needed(*samples, options.power / 100) if samples else None
        )
