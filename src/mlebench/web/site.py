"""What there is to show: the same for pages on disk and served pages. `pages` says which pages there are."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from mlebench.config import FIRST_PROFILE
from mlebench.core.paths import PROFILES
from mlebench.grade.badges import badges_in_text
from mlebench.records.report import Badge, Report
from mlebench.records.run_groups import Group
from mlebench.registry import Competition, Registry
from mlebench.report.competition_lookup import CompetitionLookup
from mlebench.report.standings import EntryStandings, Standings
from mlebench.report.types import TWIN, RunOutcome
from mlebench.web.views import View


@dataclass(frozen=True)
class Page:
    """A template and what it shows."""

    path: str
    template: str
    title: str
    view: View | None = None
    live: bool = False  # whether it shows something in progress

    @property
    def data(self) -> dict[str, Any]:
        """The view as JSON, which is kept beside the page."""
        return msgspec.to_builtins(self.view) if self.view else {}

    @property
    def depth(self) -> int:
        return self.path.count("/")


@dataclass(frozen=True)
class StandingsSection:
    """Standings for one kind of data and one profile: these are never mixed."""

    standings: Standings
    name: str  # in the path of its pages

    @classmethod
    def of(cls, standings: Standings) -> "StandingsSection":
        kind = "twins" if standings.data == TWIN else "real"
        return cls(standings, kind if standings.profile == "v1" else f"{kind}-{standings.profile}")

    @property
    def title(self) -> str:
        data = "Twins (synthetic data)" if self.standings.data == TWIN else "Real data"
        return data if self.standings.profile == "v1" else f"{data}, profile {self.standings.profile}"

    @cached_property
    def entries(self) -> dict[str, EntryStandings]:
        """The entries, by their names in paths."""
        return dict(zip(self._slugs(), self.standings.entries, strict=True))

    def _slugs(self) -> Iterator[str]:
        taken: set[str] = set()
        for row in self.standings.entries:
            base = re.sub(r"[^a-z0-9]+", "-", row.entry.agent.lower()).strip("-")[:60] or "agent"
            slug, number = base, 2
            while slug in taken:
                slug, number = f"{base}-{number}", number + 1
            taken.add(slug)
            yield slug


@dataclass(frozen=True)
class Site:
    sections: Sequence[StandingsSection]
    groups: Sequence[Group]
    registry: Registry
    live: bool = False  # whether it is served, so that pages may reload
    files: bool = False  # whether files of runs are served
    faults: tuple[str, ...] = ()  # what could not be shown, and why
    intro: str = ""  # what the first page opens with
    _competitions: dict[str, Competition | None] = field(default_factory=dict)
    _lookups: dict[str, CompetitionLookup] = field(default_factory=dict)

    @cached_property
    def section_named(self) -> dict[str, StandingsSection]:
        return {section.name: section for section in self.sections}

    @cached_property
    def group_named(self) -> dict[str, Group]:
        return {group.paths.root.name: group for group in self.groups}

    @cached_property
    def competition_ids(self) -> list[str]:
        """All competitions known here, by name."""
        return sorted(self.registry.list_competition_ids(), key=str.lower)

    def competition(self, id: str) -> Competition | None:
        if id not in self._competitions:
            known = id in set(self.competition_ids)
            self._competitions[id] = self.registry.get_competition(id) if known else None
        return self._competitions[id]

    def badges(self, report: Report) -> tuple[Badge, ...]:
        """The badges of a report: of its own profile, whatever that of the site's registry is."""
        profile = report.profile or FIRST_PROFILE
        return self.lookup(profile).badges(report) if profile in PROFILES else badges_in_text(report.badges)

    def lookup(self, profile: str) -> CompetitionLookup:
        """What is known about competitions in a profile."""
        if profile not in self._lookups:
            self._lookups[profile] = CompetitionLookup(self.registry.with_profile(profile))
        return self._lookups[profile]

    @cached_property
    def folder_of_group(self) -> dict[str, str]:
        return {group.record.id: group.paths.root.name for group in self.groups}

    def run_page(self, outcome: RunOutcome) -> str | None:
        """The path of the page about a run; None for one known only from a report."""
        folder = self.folder_of_group.get(outcome.where)
        if folder is None or outcome.run_id is None:
            return None
        return f"run/{folder}/{outcome.competition}_{outcome.run_id}.html"
