"""What standings are made of, before anything is computed: entries and the outcomes of their runs."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mlebench.records.conditions import Conditions, EntryLabel
from mlebench.records.report import Badge, Report
from mlebench.records.snapshots import SnapshotScore

SPLITS = ("low", "medium", "high", "all", "systemcard")
TWIN = "twin"


@dataclass(frozen=True)
class RunOutcome:
    """How one run ended. `missing` says why it does not count; then it has no result."""

    competition: str
    seed: int
    where: str = ""  # the run group or file it comes from
    missing: str | None = None
    score: float | None = None
    submitted: bool = False
    valid: bool = False
    above_median: bool = False
    bronze: bool | None = False  # None, like the next two: the profile withholds this medal
    silver: bool | None = False
    gold: bool | None = False
    percentile: float | None = None  # share of human teams that did worse; None: unknown
    normalised: float | None = None  # 0 is the sample submission, 1 the gold threshold; None: unknown
    run_id: str | None = None
    ended: str | None = None
    hours: float | None = None
    gpu_hours: float | None = None
    starts: int | None = None  # of the agent, in all attempts
    rerolls: int | None = None
    sealed: bool | None = None
    calls: float | None = None  # of models, through the gateway
    tokens: dict[str, float | None] | None = None
    cost: float | None = None  # in US dollars
    is_lower_bound: bool = False  # whether tokens and cost are too low
    findings: dict[str, dict[str, Any]] | None = None  # by tool, a summary of what `mlebench inspect` says
    over_time: list[SnapshotScore] | None = None  # the scores of its snapshots; None: they were not graded
    test_units: int | None = None  # None: the report does not say
    badges: tuple[Badge, ...] = ()  # why to look twice at its medal

    @property
    def any_medal(self) -> bool | None:
        """Whether it earned a medal; None if all of them are withheld."""
        medals = (self.gold, self.silver, self.bronze)
        return None if set(medals) == {None} else any(medals)


@dataclass(frozen=True)
class Entry:
    """All runs of one agent under the same conditions: one row of the standings."""

    agent: str  # a name that no other entry has
    inputs: tuple[str, ...]  # the run groups and files they come from
    outcomes: tuple[RunOutcome, ...]
    model: str | None = None
    hours_limit: float | None = None
    name: str = ""  # the agent's own
    label: EntryLabel = field(default_factory=EntryLabel)  # what the entry's name says beside the agent's
    conditions: Conditions = field(default_factory=Conditions)
    origin: str | None = None  # who wrote its run groups, in words, if others did
    bundled: bool = False  # it comes from a bundle: findings about its runs are claims

    @cached_property
    def competitions(self) -> list[str]:
        """The competitions it was run on, in order."""
        return list(dict.fromkeys(outcome.competition for outcome in self.outcomes))

    @cached_property
    def outcome_of(self) -> dict[tuple[str, int], RunOutcome]:
        """The outcomes by competition and seed."""
        return {(outcome.competition, outcome.seed): outcome for outcome in self.outcomes}

    def of(self, competitions: Iterable[str]) -> list[RunOutcome]:
        wanted = set(competitions)
        return [outcome for outcome in self.outcomes if outcome.competition in wanted]


@dataclass(frozen=True)
class ReportedRun:
    """One run as an input describes it: a report, and what is known about the run."""

    competition: str
    where: str
    profile: str
    source: str
    report: Report | None
    seed: int | None = None
    missing: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def without_unprintable(text: str) -> str:
    """A name for tables, in which nothing moves the cursor."""
    return "".join(character if character.isprintable() else "?" for character in text)
